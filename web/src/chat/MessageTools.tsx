/** What can be done with a message: copy, edit, answer again, rate; and what the answer took. */

import { useClient, usePage } from "../client";
import { CopyButton } from "../parts/CopyButton";
import { Icon } from "../parts/Icon";
import type { Message } from "../protocol";
import { openAsk, textOf } from "../state/chat";
import { words } from "../words/words";
import { Feedback } from "./Feedback";
import { UsageLine } from "./UsageLine";

export function MessageTools({ message, onEdit }: { readonly message: Message; readonly onEdit: () => void }) {
  const client = useClient();
  const isIdle = usePage((page) => page.current.run === null);
  const question = usePage((page) => page.current.questions.get(message.id) ?? null);
  const isAsking = usePage((page) => openAsk(page.current)?.message_id === message.id);
  const text = textOf(message);
  if (text === "" && message.role !== "assistant") return null;
  return (
    <footer class="tools">
      {text !== "" && <CopyButton text={text} />}
      {question === message.id && isIdle && (
        <button type="button" class="quiet icon-button" title={words.edit} aria-label={words.edit} onClick={onEdit}>
          <Icon name="edit" size={16} />
        </button>
      )}
      {message.role !== "user" && question !== null && isIdle && (
        <button
          type="button"
          class="quiet icon-button"
          title={words.again}
          aria-label={words.again}
          onClick={() => client.regenerate(question)}
        >
          <Icon name="again" size={16} />
        </button>
      )}
      {message.role === "assistant" && question !== null && !isAsking && <Feedback messageId={message.id} />}
      <UsageLine message={message} />
    </footer>
  );
}
