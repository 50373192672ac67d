/** An empty chat: a greeting, what the app is, who may answer, and something to begin with. */

import { useClient, usePage } from "../client";
import { Markdown } from "../markdown/Markdown";
import { NamedIcon } from "../parts/Icon";
import type { Starter } from "../protocol";
import { words } from "../words/words";

export function Welcome() {
  const app = usePage((page) => page.app);
  const profile = usePage((page) => page.profiles.find(({ name }) => name === page.profile));
  const categories = usePage((page) => page.starters);
  const own = profile?.starters ?? [];
  const shown = own.length > 0 ? [{ label: "", starters: own }] : categories;
  const description = profile?.description || app?.description || "";
  return (
    <section class="welcome">
      <h1>
        <span>{greeting(new Date().getHours())}</span>
        <span>{words.invitation}</span>
      </h1>
      {description !== "" && <Markdown text={description} />}
      {shown.map(({ label, starters }) => (
        <div key={label} class="starters">
          {label !== "" && <h2>{label}</h2>}
          <div class="starter-grid">
            {starters.map((starter) => (
              <StarterButton key={starter.label} starter={starter} />
            ))}
          </div>
        </div>
      ))}
    </section>
  );
}

function StarterButton({ starter }: { readonly starter: Starter }) {
  const client = useClient();
  return (
    <button type="button" class="starter" onClick={() => client.say(starter.message, { command: starter.command })}>
      <span class="starter-label">
        <NamedIcon name={starter.icon} label="" />
        {starter.label}
      </span>
      {starter.message !== starter.label && <span class="starter-message">{starter.message}</span>}
    </button>
  );
}

function greeting(hour: number): string {
  if (hour >= 5 && hour < 11) return words.morning;
  return hour >= 11 && hour < 18 ? words.afternoon : words.evening;
}
