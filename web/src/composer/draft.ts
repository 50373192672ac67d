/** What is written and not sent: kept for each chat while the tab is open, also when the page is loaded again. */

import { useState } from "preact/hooks";
import { chatOf } from "../address";

const drafts = new Map<string, string>();

/** The draft of the chat that the address names, or of the chat that is yet to begin; and how to change it. */
export function useDraft(): [string, (text: string) => void] {
  const [, redraw] = useState(0);
  const key = `kaiwa-draft/${chatOf(location.pathname) ?? ""}`;
  const set = (text: string): void => {
    drafts.set(key, text);
    store(key, text);
    redraw((count) => count + 1);
  };
  return [drafts.get(key) ?? stored(key), set];
}

// A browser may refuse to store anything, for instance in a frame: then a draft lives as long as the page.

function stored(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function store(key: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    return;
  }
}
