/** Which command the next message carries, and the menu in which it is chosen. */

import { useEffect, useState } from "preact/hooks";
import type { SlashCommand } from "../protocol";
import { fitting } from "./CommandMenu";

export interface CommandChoice {
  readonly chosen: SlashCommand | null;
  readonly menu: readonly SlashCommand[];
  readonly active: number;
  choose(command: SlashCommand | null): void;
  /** Moves in the menu or takes from it; true where the key was for the menu. */
  key(event: KeyboardEvent): boolean;
  /** After a message: only a persistent command stays. */
  sent(): void;
}

export function useCommandChoice(commands: readonly SlashCommand[], text: string, clear: () => void): CommandChoice {
  const [chosen, setChosen] = useState<SlashCommand | null>(null);
  const [active, setActive] = useState(0);
  const [dismissed, setDismissed] = useState("");
  const menu = text === dismissed ? [] : fitting(commands, text);
  const index = Math.min(active, Math.max(0, menu.length - 1));

  useEffect(() => setChosen(commands.find((command) => command.is_selected) ?? null), [commands]);

  const choose = (command: SlashCommand | null): void => {
    setChosen(command);
    if (menu.length > 0) clear();
    setActive(0);
  };

  const key = (event: KeyboardEvent): boolean => {
    if (menu.length === 0) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setActive((index + step + menu.length) % menu.length);
    else if (event.key === "Enter" || event.key === "Tab") choose(menu[index] ?? null);
    else if (event.key === "Escape") setDismissed(text);
    else return false;
    return true;
  };

  return {
    chosen,
    menu,
    active: index,
    choose,
    key,
    sent: () => setChosen((before) => (before?.is_persistent ? before : null)),
  };
}
