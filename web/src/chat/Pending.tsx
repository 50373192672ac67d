/** What was said and has not reached the server; and that the app works, where nothing else shows it. */

import { usePage } from "../client";
import { words } from "../words/words";
import { PlainText } from "./PlainText";

export function Pending() {
  const unsent = usePage((page) => page.unsent);
  const isOnline = usePage((page) => page.link === "open");
  const isRunning = usePage((page) => page.current.run !== null);
  const place = usePage((page) => page.current.queuePlace);
  const shows = usePage((page) => showsWork(page.current));
  return (
    <>
      {[...unsent.values()].map((say) => (
        <article key={say.message_id} class="turn message user" data-state="unsent" aria-label={words.yourMessage}>
          <div class="body"><PlainText text={say.text} /></div>
          <p class="state" role="status">{isOnline ? words.sending : words.willSend}</p>
        </article>
      ))}
      {isRunning && (place > 0 || !shows) && (
        <p class="working pulse" role="status">{place > 0 ? words.waitingFor(place) : words.working}</p>
      )}
    </>
  );
}

type Current = Parameters<Parameters<typeof usePage>[0]>[0]["current"];

function showsWork({ messages, steps, asks }: Current): boolean {
  for (const message of messages.values()) if (message.state === "streaming") return true;
  for (const step of steps.values()) if (step.state === "in_use") return true;
  for (const { outcome } of asks.values()) if (outcome === "open") return true;
  return false;
}
