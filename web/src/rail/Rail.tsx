/** The list of chats, the newest first, by when they were last touched. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { LineField } from "../composer/LineField";
import { Icon } from "../parts/Icon";
import type { Chat } from "../protocol";
import { change, closeRailIfOver, useView } from "../state/view";
import { words } from "../words/words";
import { ChatRow } from "./ChatRow";
import { UserRow } from "./UserRow";
import { grouped } from "./groups";
import "./rail.css";

const SEARCH_DELAY_MS = 200;

export function Rail() {
  const isOpen = useView((view) => view.isRailOpen);
  const name = usePage((page) => page.app?.name ?? "");
  const chats = usePage((page) => page.chats);
  const client = useClient();
  const begin = (): void => {
    client.newChat();
    closeRailIfOver();
  };
  return (
    <>
      <nav class="rail" aria-label={words.chats} data-open={isOpen} inert={!isOpen}>
        <header>
          <span class="seal" aria-hidden="true">
            会
          </span>
          <span class="app-name ellipsis">{name}</span>
          <button
            type="button"
            class="quiet icon-button"
            title={words.closeMenu}
            aria-label={words.closeMenu}
            onClick={() => change({ isRailOpen: false })}
          >
            <Icon name="panel" />
          </button>
        </header>
        <button type="button" class="new-chat" onClick={begin}>
          <Icon name="plus" />
          {words.newChat}
        </button>
        <Search />
        <ChatList chats={chats} />
        <UserRow />
      </nav>
      {isOpen && <div class="rail-veil" onClick={() => change({ isRailOpen: false })} />}
    </>
  );
}

function Search() {
  const client = useClient();
  const [text, setText] = useState("");
  const [timer, setTimer] = useState(0);
  const search = (next: string): void => {
    setText(next);
    clearTimeout(timer);
    setTimer(window.setTimeout(() => client.search(next.trim()), SEARCH_DELAY_MS));
  };
  return (
    <label class="search">
      <Icon name="search" size={16} />
      <LineField
        value={text}
        label={words.searchChats}
        placeholder={words.searchChats}
        onInput={search}
        onEscape={() => search("")}
      />
    </label>
  );
}

function ChatList({ chats }: { readonly chats: readonly Chat[] }) {
  const client = useClient();
  const hasMore = usePage((page) => page.nextChats !== null);
  const isSearch = usePage((page) => page.search !== "");
  if (chats.length === 0) return <p class="rail-empty">{isSearch ? words.nothingFound : words.noChats}</p>;
  return (
    <div class="chat-list">
      {grouped(chats, new Date()).map(({ label, members }) => (
        <section key={label}>
          <h2>{label}</h2>
          <ul>
            {members.map((chat) => (
              <ChatRow key={chat.id} chat={chat} />
            ))}
          </ul>
        </section>
      ))}
      {hasMore && (
        <button type="button" class="link" onClick={() => client.moreChats()}>
          {words.more}
        </button>
      )}
    </div>
  );
}
