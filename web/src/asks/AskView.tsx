/** The question of a message: the way to answer it, or what became of it. */

import { usePage } from "../client";
import type { Ask } from "../protocol";
import type { AskState } from "../state/chat";
import { words } from "../words/words";
import { AskActions } from "./AskActions";
import { AskElement } from "./AskElement";
import { AskFiles } from "./AskFiles";
import { Deadline } from "./Deadline";
import "./asks.css";

export function AskView({ messageId }: { readonly messageId: string }) {
  const asked = usePage((page) => askOf(page.current.asks, messageId));
  if (asked === null) return null;
  const { ask, outcome, summary } = asked;
  if (outcome !== "open") {
    const ending = ENDINGS[outcome] ?? (ask.kind === "text" ? "" : summary);
    return ending === "" ? null : <p class="state answered">{ending}</p>;
  }
  return (
    <section class="ask" data-kind={ask.kind}>
      <Question ask={ask} />
      <Deadline at={ask.expires_at} />
    </section>
  );
}

const ENDINGS: Readonly<Partial<Record<AskState["outcome"], string>>> = {
  timed_out: words.timedOut,
  cancelled: words.cancelled,
  lost: words.cancelled,
};

/** Text is answered in the composer. */
function Question({ ask }: { readonly ask: Ask }) {
  if (ask.kind === "action") return <AskActions ask={ask} />;
  if (ask.kind === "file") return <AskFiles ask={ask} />;
  return ask.kind === "element" ? <AskElement ask={ask} /> : null;
}

function askOf(asks: ReadonlyMap<string, AskState>, messageId: string): AskState | null {
  let found: AskState | null = null;
  for (const asked of asks.values()) if (asked.ask.message_id === messageId) found = asked;
  return found;
}
