/** What only this tab knows: which panels are open. */

import type { Sidebar } from "../protocol";
import { Store, useSelected } from "./store";

export interface View {
  readonly isRailOpen: boolean;
  readonly isSettingsOpen: boolean;
  /** Elements that the person looks at beside the chat; null where it is the app's own sidebar, or nothing. */
  readonly beside: readonly string[] | null;
  /** The app's sidebar that the person has closed. */
  readonly closedSidebar: Sidebar | null;
  /** An element that fills the page. */
  readonly whole: string | null;
}

const WIDE = "(min-width: 60rem)";

export const view = new Store<View>({
  isRailOpen: matchMedia(WIDE).matches,
  isSettingsOpen: false,
  beside: null,
  closedSidebar: null,
  whole: null,
});

export function useView<T>(select: (view: View) => T): T {
  return useSelected(view, select);
}

export function change(part: Partial<View>): void {
  view.update((before) => ({ ...before, ...part }));
}

/** On a small screen the list of chats covers the chat, and goes once one is chosen. */
export function closeRailIfOver(): void {
  if (!matchMedia(WIDE).matches) change({ isRailOpen: false });
}
