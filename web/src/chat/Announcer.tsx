/** Tells people who listen to the page what an answer says, once it is whole and not word by word. */

import { usePage } from "../client";
import type { Message } from "../protocol";
import { textOf } from "../state/chat";
import { words } from "../words/words";

const MAX_CHARS = 1000;

export function Announcer() {
  const last = usePage((page) => lastAnswer(page.current.messages));
  const isWhole = last !== null && last.state !== "streaming";
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {isWhole && `${words.answerOf(last.author)}: ${textOf(last).slice(0, MAX_CHARS)}`}
    </div>
  );
}

function lastAnswer(messages: ReadonlyMap<string, Message>): Message | null {
  let last: Message | null = null;
  for (const message of messages.values()) if (message.role !== "user") last = message;
  return last;
}
