/** The buttons below a message. */

import { useClient } from "../client";
import { NamedIcon } from "../parts/Icon";
import type { Action } from "../protocol";

export function ActionButtons({ actions }: { readonly actions: readonly Action[] }) {
  const client = useClient();
  if (actions.length === 0) return null;
  return (
    <div class="actions">
      {actions.map((action) => (
        <button
          key={action.id}
          type="button"
          class="chip"
          title={action.tooltip}
          onClick={() => client.press(action.id)}
        >
          <NamedIcon name={action.icon} label="" />
          {action.label || action.name}
        </button>
      ))}
    </div>
  );
}
