/** Above the chat: its name, who answers, and its settings. */

import { useClient, usePage } from "../client";
import { change, useView } from "../state/view";
import { words } from "../words/words";
import { isEmbedded } from "../embed/outside";
import { Icon } from "./Icon";

export function TopBar() {
  const client = useClient();
  const isRailOpen = useView((view) => view.isRailOpen);
  const title = usePage((page) => page.current.chat?.title ?? "");
  const hasSettings = usePage((page) => page.current.tabs.length > 0);
  return (
    <header class="top-bar">
      {!isRailOpen && !isEmbedded && (
        <button
          type="button"
          class="quiet icon-button"
          title={words.openMenu}
          aria-label={words.openMenu}
          onClick={() => change({ isRailOpen: true })}
        >
          <Icon name="menu" />
        </button>
      )}
      {(!isRailOpen || isEmbedded) && (
        <button
          type="button"
          class="quiet icon-button"
          title={words.newChat}
          aria-label={words.newChat}
          onClick={() => client.newChat()}
        >
          <Icon name="plus" />
        </button>
      )}
      <Profiles />
      <span class="chat-title ellipsis" dir="auto">
        {title}
      </span>
      {hasSettings && (
        <button
          type="button"
          class="quiet icon-button"
          title={words.settings}
          aria-label={words.settings}
          onClick={() => change({ isSettingsOpen: true })}
        >
          <Icon name="sliders" />
        </button>
      )}
    </header>
  );
}

/** Who answers. Another choice begins another chat. */
function Profiles() {
  const client = useClient();
  const profiles = usePage((page) => page.profiles);
  const current = usePage((page) => page.current.chat?.profile ?? page.profile);
  if (profiles.length < 2) return null;
  return (
    <select
      class="profiles"
      aria-label={words.newChat}
      value={current ?? ""}
      onChange={(event) => client.chooseProfile(event.currentTarget.value)}
    >
      {profiles.map((profile) => (
        <option key={profile.name} value={profile.name}>
          {profile.display_name || profile.name}
        </option>
      ))}
    </select>
  );
}
