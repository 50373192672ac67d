/** The elements of a message or step: those to see in place, and names of those to open beside it. */

import { usePage } from "../client";
import { Icon } from "../parts/Icon";
import type { Element } from "../protocol";
import { openAsk } from "../state/chat";
import { change } from "../state/view";
import { ElementView } from "./ElementView";
import "./elements.css";

const NOTHING: readonly string[] = [];

export function ElementsOf({ id, extra }: { readonly id: string; readonly extra: readonly string[] }) {
  const own = usePage((page) => page.current.elementsOf.get(id) ?? NOTHING);
  const all = usePage((page) => page.current.elements);
  // What a question is answered by, is a form below its message and not shown a second time.
  const asked = usePage((page) => openAsk(page.current)?.element_id ?? null);
  const ids = new Set([...own, ...extra].filter((each) => each !== asked));
  if (ids.size === 0) return null;
  const elements = [...ids].flatMap((each) => all.get(each) ?? []);
  const inline = elements.filter(({ display }) => display === "inline");
  const images = inline.filter(({ kind }) => kind === "image");
  const others = inline.filter(({ kind }) => kind !== "image");
  const elsewhere = elements.filter(({ display }) => display !== "inline");
  return (
    <div class="elements">
      {images.length > 0 && (
        <div class="images" data-count={images.length}>
          {images.map((element) => (
            <ElementView key={element.id} element={element} />
          ))}
        </div>
      )}
      {others.map((element) => (
        <ElementView key={element.id} element={element} />
      ))}
      {elsewhere.length > 0 && (
        <div class="references">
          {elsewhere.map((element) => (
            <Reference key={element.id} element={element} />
          ))}
        </div>
      )}
    </div>
  );
}

function Reference({ element }: { readonly element: Element }) {
  const open = (): void => change(element.display === "page" ? { whole: element.id } : { beside: [element.id] });
  return (
    <button type="button" class="chip" onClick={open}>
      <Icon name={element.display === "page" ? "outside" : "panel"} size={16} />
      {element.name}
    </button>
  );
}
