/** One element, as large as the window. */

import { absolute } from "../address";
import { usePage } from "../client";
import { Dialog } from "../parts/Dialog";
import { change, useView } from "../state/view";
import { ElementView } from "./ElementView";

export function Whole() {
  const id = useView((view) => view.whole);
  const element = usePage((page) => (id === null ? undefined : page.current.elements.get(id)));
  if (element === undefined) return null;
  return (
    <Dialog title={element.name} isWide onClose={() => change({ whole: null })}>
      {element.kind === "image" && element.url !== null ? (
        <img class="whole-image" src={absolute(element.url)} alt={element.name} />
      ) : (
        <ElementView element={element} />
      )}
    </Dialog>
  );
}
