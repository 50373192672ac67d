/** One message: whose it is, what it says, and what can be done with it. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { ElementsOf } from "../elements/ElementsOf";
import { AskView } from "../asks/AskView";
import type { Message } from "../protocol";
import { textOf } from "../state/chat";
import { words } from "../words/words";
import { ActionButtons } from "./ActionButtons";
import { EditField } from "./EditField";
import { Ending } from "./Ending";
import { MessageTools } from "./MessageTools";
import { PartView } from "./PartView";
import "./message.css";

export function MessageView({ message }: { readonly message: Message }) {
  const client = useClient();
  const author = usePage((page) => page.app?.author ?? "");
  const [isEditing, setEditing] = useState(false);
  const isMine = message.role === "user";
  const isGrowing = message.state === "streaming";
  const isUnusualAuthor = !isMine && message.author !== "" && message.author !== author;

  return (
    <article
      class={`turn message ${message.role}`}
      data-state={message.state}
      data-id={message.id}
      aria-label={isMine ? words.yourMessage : words.answerOf(message.author || author)}
      aria-busy={isGrowing}
    >
      {isUnusualAuthor && <header class="author">{message.author}</header>}
      {isEditing ? (
        <EditField
          text={textOf(message)}
          onCancel={() => setEditing(false)}
          onSave={(text) => {
            setEditing(false);
            client.edit(message.id, text);
          }}
        />
      ) : (
        <div class="body">
          {message.command !== null && <span class="chip small">/{message.command}</span>}
          {message.parts.map((part, i) => (
            <PartView
              key={i}
              part={part}
              language={message.language}
              isGrowing={isGrowing && i === message.parts.length - 1}
              isMine={isMine}
            />
          ))}
          {isGrowing && message.parts.length === 0 && (
            <span class="pulse" role="status">
              {words.thinking}
            </span>
          )}
        </div>
      )}
      <ElementsOf id={message.id} extra={message.element_ids} />
      <AskView messageId={message.id} />
      <ActionButtons actions={message.actions} />
      <Ending message={message} />
      {!isEditing && message.state !== "queued" && !isGrowing && (
        <MessageTools message={message} onEdit={() => setEditing(true)} />
      )}
      {message.state === "queued" && (
        <p class="state">
          {words.queued}
          <button type="button" class="link" onClick={() => client.withdraw(message.id)}>
            {words.takeBack}
          </button>
        </p>
      )}
    </article>
  );
}
