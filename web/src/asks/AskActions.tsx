/** A question that is answered by pressing one of its buttons. */

import { useClient } from "../client";
import { NamedIcon } from "../parts/Icon";
import type { Ask } from "../protocol";
import { words } from "../words/words";

export function AskActions({ ask }: { readonly ask: Ask }) {
  const client = useClient();
  return (
    <div class="actions" role="group" aria-label={words.chooseOne}>
      {ask.actions.map((action) => (
        <button
          key={action.id}
          type="button"
          class="chip strong"
          title={action.tooltip}
          onClick={() => client.answer(ask.id, { action_id: action.id })}
        >
          <NamedIcon name={action.icon} label="" />
          {action.label || action.name}
        </button>
      ))}
    </div>
  );
}
