/** Chats by day, as people remember them. */

import type { Chat } from "../protocol";
import { words } from "../words/words";

export interface Group {
  readonly label: string;
  readonly members: readonly Chat[];
}

const DAY_MS = 86_400_000;

/** `chats` in their order under "today", "yesterday", "last 7 days" and "earlier"; groups without any are left out. */
export function grouped(chats: readonly Chat[], now: Date): Group[] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const label = (chat: Chat): string => {
    const time = chat.updated_at * 1000;
    if (time >= midnight) return words.today;
    if (time >= midnight - DAY_MS) return words.yesterday;
    return time >= midnight - 7 * DAY_MS ? words.thisWeek : words.earlier;
  };
  const groups = new Map<string, Chat[]>();
  for (const chat of chats) {
    const members = groups.get(label(chat)) ?? [];
    members.push(chat);
    groups.set(label(chat), members);
  }
  return [...groups].map(([name, members]) => ({ label: name, members }));
}
