/** An image of the app; a click shows it as large as the window allows. */

import { absolute } from "../address";
import type { Element } from "../protocol";
import { change } from "../state/view";

export function ImageView({ element }: { readonly element: Element }) {
  if (element.url === null) return null;
  return (
    <button type="button" class="image-button" aria-label={element.name} onClick={() => change({ whole: element.id })}>
      <img src={absolute(element.url)} alt={element.name} loading="lazy" decoding="async" />
    </button>
  );
}
