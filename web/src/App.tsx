/** The page: the list of chats, the chat, and what stands beside it. */

import { useEffect } from "preact/hooks";
import { usePage } from "./client";
import { Conversation } from "./chat/Conversation";
import { Beside } from "./elements/Beside";
import { Whole } from "./elements/Whole";
import { Login } from "./parts/Login";
import { Toasts } from "./parts/Toasts";
import { TopBar } from "./parts/TopBar";
import { Rail } from "./rail/Rail";
import { SettingsDialog } from "./settings/SettingsDialog";
import { isEmbedded } from "./embed/outside";

export function App() {
  const needsLogin = usePage((page) => page.needsLogin);
  const name = usePage((page) => page.app?.name ?? "Kaiwa");
  const title = usePage((page) => page.current.chat?.title ?? "");
  useEffect(() => {
    document.title = title === "" ? name : `${title} – ${name}`;
  }, [name, title]);

  if (needsLogin) return <Login />;
  return (
    <div class={isEmbedded ? "page embedded" : "page"}>
      {!isEmbedded && <Rail />}
      <div class="stage">
        <TopBar />
        <Conversation />
      </div>
      <Beside />
      <Whole />
      <SettingsDialog />
      <Toasts />
    </div>
  );
}
