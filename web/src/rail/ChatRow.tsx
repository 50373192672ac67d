/** One chat of the list: open it, give it another name, delete it. */

import { useState } from "preact/hooks";
import { absolute } from "../address";
import { useClient, usePage } from "../client";
import { LineField } from "../composer/LineField";
import { Icon } from "../parts/Icon";
import type { Chat } from "../protocol";
import { closeRailIfOver } from "../state/view";
import { words } from "../words/words";

export function ChatRow({ chat }: { readonly chat: Chat }) {
  const client = useClient();
  const isCurrent = usePage((page) => page.current.id === chat.id);
  const [state, setState] = useState<"shown" | "renaming" | "deleting">("shown");
  const [title, setTitle] = useState(chat.title);

  const open = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.button !== 0) return; // a new tab, as with any link
    event.preventDefault();
    client.openChat(chat.id);
    closeRailIfOver();
  };
  const rename = (): void => {
    if (state !== "renaming") return;
    setState("shown");
    if (title.trim() !== "" && title !== chat.title) client.renameChat(chat.id, title.trim());
  };

  if (state === "renaming") {
    return (
      <li class="chat-row">
        <LineField
          value={title}
          label={words.rename}
          hasFocus
          onInput={setTitle}
          onEnter={rename}
          onBlur={rename}
          onEscape={() => setState("shown")}
        />
      </li>
    );
  }
  if (state === "deleting") {
    return (
      <li class="chat-row asking">
        <span>{words.deleteAsk}</span>
        <button type="button" class="chip danger" onClick={() => client.deleteChat(chat.id)}>
          {words.delete}
        </button>
        <button type="button" class="chip" onClick={() => setState("shown")}>
          {words.cancel}
        </button>
      </li>
    );
  }
  return (
    <li class="chat-row" aria-current={isCurrent ? "page" : undefined}>
      <a href={absolute(`chat/${chat.id}`)} class="ellipsis" onClick={open} dir="auto">
        {chat.title || words.untitled}
      </a>
      {chat.run_state !== "idle" && <span class="spinner" role="img" aria-label={words.working} />}
      <span class="row-tools">
        <button
          type="button"
          class="quiet icon-button"
          title={words.rename}
          aria-label={words.rename}
          onClick={() => {
            setTitle(chat.title);
            setState("renaming");
          }}
        >
          <Icon name="edit" size={14} />
        </button>
        <button
          type="button"
          class="quiet icon-button"
          title={words.delete}
          aria-label={words.delete}
          onClick={() => setState("deleting")}
        >
          <Icon name="trash" size={14} />
        </button>
      </span>
    </li>
  );
}
