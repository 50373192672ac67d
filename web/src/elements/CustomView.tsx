/** An app's own element: its properties as a small form or list. No code of an app runs in the page. */

import type { Element } from "../protocol";
import { cell } from "./frame";

export function CustomView({ element }: { readonly element: Element }) {
  const entries = Object.entries(element.props);
  return (
    <>
      <figcaption>{element.name}</figcaption>
      <dl class="custom">
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{cell(value)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
