/** How an answer ended, where it did not end by itself. */

import type { Message } from "../protocol";
import { words } from "../words/words";

export function Ending({ message }: { readonly message: Message }) {
  const text = ending(message);
  return text === null ? null : <p class="state">{text}</p>;
}

function ending({ state, finish_reason, role }: Message): string | null {
  if (state === "stopped") return finish_reason === "lost" ? words.lost : words.stopped;
  if (state === "failed" && role !== "error") return words.failed;
  if (finish_reason === "length") return words.cutOff;
  return null;
}
