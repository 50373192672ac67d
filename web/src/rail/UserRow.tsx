/** Who is logged in, where anybody has to be. */

import { useClient, usePage } from "../client";
import { Icon } from "../parts/Icon";
import { words } from "../words/words";

export function UserRow() {
  const client = useClient();
  const user = usePage((page) => page.user);
  if (user === null) return null;
  return (
    <footer class="user-row">
      <span class="initial" aria-hidden="true">
        {[...(user.display_name || user.identifier)][0]}
      </span>
      <span class="ellipsis">{user.display_name || user.identifier}</span>
      <button
        type="button"
        class="quiet icon-button"
        title={words.logOut}
        aria-label={words.logOut}
        onClick={() => void client.logOut()}
      >
        <Icon name="logout" size={16} />
      </button>
    </footer>
  );
}
