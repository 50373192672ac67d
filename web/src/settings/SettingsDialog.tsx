/** The settings that an app offers for this chat. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { Dialog } from "../parts/Dialog";
import type { SettingValue } from "../state/chat";
import { change, useView } from "../state/view";
import { words } from "../words/words";
import { WidgetView } from "./WidgetView";
import "./settings.css";

export function SettingsDialog() {
  const isOpen = useView((view) => view.isSettingsOpen);
  const hasSettings = usePage((page) => page.current.tabs.length > 0);
  return isOpen && hasSettings ? <Open /> : null;
}

function Open() {
  const client = useClient();
  const tabs = usePage((page) => page.current.tabs);
  const values = usePage((page) => page.current.values);
  const [changed, setChanged] = useState<Readonly<Record<string, SettingValue>>>({});
  const [tabId, setTabId] = useState(tabs[0]?.id);
  const tab = tabs.find(({ id }) => id === tabId) ?? tabs[0];
  const close = (): void => change({ isSettingsOpen: false });
  const set = (id: string, value: SettingValue): void => {
    const next = { ...changed, [id]: value };
    setChanged(next);
    client.changeSettings(next, false);
  };
  const save = (): void => {
    client.changeSettings({ ...changed }, true);
    close();
  };
  return (
    <Dialog title={words.settings} onClose={close}>
      {tabs.length > 1 && (
        <div class="tabs" role="tablist">
          {tabs.map(({ id, label }) => (
            <button
              key={id}
              type="button"
              role="tab"
              class="chip"
              aria-selected={id === tab?.id}
              onClick={() => setTabId(id)}
            >
              {label}
            </button>
          ))}
        </div>
      )}
      <div class="widgets" role={tabs.length > 1 ? "tabpanel" : undefined}>
        {tab?.widgets.map((widget) => (
          <WidgetView
            key={widget.id}
            widget={widget}
            value={changed[widget.id] ?? values[widget.id] ?? null}
            onChange={(value) => set(widget.id, value)}
          />
        ))}
      </div>
      <footer class="dialog-foot">
        <button type="button" class="chip" onClick={close}>
          {words.cancel}
        </button>
        <button type="button" class="primary" onClick={save}>
          {words.save}
        </button>
      </footer>
    </Dialog>
  );
}
