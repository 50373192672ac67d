/** What was said and has not reached the server; and that the app works, where nothing else shows it. */

import { usePage } from "../client";
import { ProgressBar } from "../parts/ProgressBar";
import { words } from "../words/words";
import { PlainText } from "./PlainText";

export function Pending() {
  const unsent = usePage((page) => page.unsent);
  const isOnline = usePage((page) => page.link === "open");
  return (
    <>
      {[...unsent.values()].map((say) => (
        <article key={say.message_id} class="turn message user" data-state="unsent" aria-label={words.yourMessage}>
          <div class="body">
            <PlainText text={say.text} />
          </div>
          <p class="state" role="status">
            {isOnline ? words.sending : words.willSend}
          </p>
        </article>
      ))}
      <Working />
    </>
  );
}

/** That the app works, and on what: a place in the queue, a prompt that is read, or only that it does. */
function Working() {
  const isRunning = usePage((page) => page.current.run !== null);
  const place = usePage((page) => page.current.queuePlace);
  const reading = usePage((page) => page.current.reading);
  const isShown = usePage((page) => showsWork(page.current));
  if (!isRunning) return null;
  if (place > 0)
    return (
      <p class="working pulse" role="status">
        {words.waitingFor(place - 1)}
      </p>
    );
  if (reading !== null && reading.prompt_tokens > 0) {
    const { read_tokens, prompt_tokens } = reading;
    const progress = { stage: words.reading, done: read_tokens, total: prompt_tokens, unit: "tok" };
    return (
      <div class="working">
        <ProgressBar progress={progress} />
      </div>
    );
  }
  return isShown ? null : (
    <p class="working pulse" role="status">
      {words.working}
    </p>
  );
}

type Current = Parameters<Parameters<typeof usePage>[0]>[0]["current"];

function showsWork({ messages, steps, asks }: Current): boolean {
  for (const message of messages.values()) if (message.state === "streaming") return true;
  for (const step of steps.values()) if (step.state === "in_use") return true;
  for (const { outcome } of asks.values()) if (outcome === "open") return true;
  return false;
}
