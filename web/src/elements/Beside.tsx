/** What stands beside the chat: the app's sidebar, or what the person has opened. */

import { usePage } from "../client";
import { Icon } from "../parts/Icon";
import { change, useView } from "../state/view";
import { words } from "../words/words";
import { ElementView } from "./ElementView";

export function Beside() {
  const sidebar = usePage((page) => page.current.sidebar);
  const elements = usePage((page) => page.current.elements);
  const chosen = useView((view) => view.beside);
  const closed = useView((view) => view.closedSidebar);
  // An app that says by its key that it is still the same sidebar does not open it again.
  const isClosed = closed !== null && (closed === sidebar || (closed.key !== null && closed.key === sidebar?.key));
  const ids = chosen ?? (sidebar !== null && !isClosed ? sidebar.element_ids : null);
  const shown = ids?.flatMap((id) => elements.get(id) ?? []) ?? [];
  if (shown.length === 0) return null;
  const title = chosen !== null ? (shown[0]?.name ?? "") : (sidebar?.title ?? "");
  const close = (): void => change(chosen !== null ? { beside: null } : { closedSidebar: sidebar });
  return (
    <aside class="beside" aria-label={title}>
      <header>
        <h2 class="ellipsis">{title}</h2>
        <button type="button" class="quiet icon-button" aria-label={words.close} title={words.close} onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      <div class="beside-body">
        {shown.map((element) => (
          <ElementView key={element.id} element={element} />
        ))}
      </div>
    </aside>
  );
}
