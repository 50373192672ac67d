/** The chat in view: what was said, what the app does, and at the end what has not arrived yet. */

import { useClient, usePage } from "../client";
import { Composer } from "../composer/Composer";
import { Icon } from "../parts/Icon";
import { ROOT } from "../state/chat";
import { words } from "../words/words";
import { Announcer } from "./Announcer";
import { Notices } from "./Notices";
import { Pending } from "./Pending";
import { TaskListView } from "./TaskListView";
import { Turn } from "./Turn";
import { Welcome } from "./Welcome";
import { useBottom } from "./bottom";
import { useEarlier } from "./earlier";
import { useFileDrop } from "./file_drop";
import "./conversation.css";

const NOTHING: readonly string[] = [];

export function Conversation() {
  const client = useClient();
  const id = usePage((page) => page.current.id);
  const roots = usePage((page) => page.current.children.get(ROOT) ?? NOTHING);
  const isEmpty = usePage(
    (page) => page.current.messages.size === 0 && page.current.steps.size === 0 && page.unsent.size === 0,
  );
  const isOpened = usePage((page) => page.current.chat !== null);
  const problem = usePage((page) => page.problem);
  const bottom = useBottom(id);
  const earlier = useEarlier(roots, id);
  const drop = useFileDrop();

  return (
    <main class={isEmpty ? "conversation is-empty" : "conversation"} {...drop.handlers}>
      <div class="scroller" ref={bottom.scroller} tabIndex={-1}>
        <div class="column" ref={bottom.content} role="log" aria-label={words.conversation} aria-live="off">
          {problem !== null && (
            <div class="problem" role="alert">
              <h2>{words.notFound}</h2>
              <p>
                {problem.message} {problem.hint}
              </p>
              <button type="button" class="primary" onClick={() => client.newChat()}>
                {words.newChat}
              </button>
            </div>
          )}
          {earlier.hasHidden && <div ref={earlier.sentinel} class="earlier" />}
          {earlier.ids.map((each) => (
            <Turn key={each} id={each} />
          ))}
          <Pending />
          {isEmpty && isOpened && problem === null && <Welcome />}
        </div>
      </div>
      <Announcer />
      <div class="dock">
        {!bottom.isFollowing && (
          <button
            type="button"
            class="round to-end"
            title={words.scrollDown}
            aria-label={words.scrollDown}
            onClick={bottom.follow}
          >
            <Icon name="arrowDown" />
          </button>
        )}
        <Notices />
        <TaskListView />
        <Composer key={id} onSent={bottom.follow} />
      </div>
      {drop.isOver && <div class="drop-hint">{words.dropFiles}</div>}
    </main>
  );
}
