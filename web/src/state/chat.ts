/** One chat as its events have made it: plain data that is never changed, only replaced. */

import type {
  Ask,
  Chat,
  Element,
  Message,
  Mode,
  PromptProgress,
  SettingsChanged,
  Sidebar,
  SlashCommand,
  Step,
  Tab,
  TaskList,
} from "../protocol";

export type SettingValue = SettingsChanged["values"][string];

export interface Run {
  readonly id: string;
  readonly messageId: string | null;
}

export interface AskState {
  readonly ask: Ask;
  readonly outcome: "open" | "answered" | "timed_out" | "cancelled" | "lost";
  readonly summary: string;
}

export interface ChatState {
  readonly id: string;
  /** The row in the list of chats; null until the server has opened the chat. */
  readonly chat: Chat | null;
  /** Of the last events applied: where to go on after a reconnect. */
  readonly offset: number;
  readonly messages: ReadonlyMap<string, Message>;
  /** The message that the app was called with when it said this one; that message names itself. */
  readonly questions: ReadonlyMap<string, string>;
  readonly steps: ReadonlyMap<string, Step>;
  readonly elements: ReadonlyMap<string, Element>;
  /** What is in a step, and under "" what is in none: ids of messages and steps in the order of their arrival. */
  readonly children: ReadonlyMap<string, readonly string[]>;
  /** Elements by the id of the message or step that they belong to. */
  readonly elementsOf: ReadonlyMap<string, readonly string[]>;
  readonly asks: ReadonlyMap<string, AskState>;
  readonly feedback: ReadonlyMap<string, -1 | 0 | 1>;
  readonly tabs: readonly Tab[];
  readonly values: Readonly<Record<string, SettingValue>>;
  readonly commands: readonly SlashCommand[];
  readonly modes: readonly Mode[];
  readonly taskList: TaskList | null;
  readonly sidebar: Sidebar | null;
  readonly run: Run | null;
  /** Where the answer stands in the model's queue: 1 comes next, 0 waits no longer. */
  readonly queuePlace: number;
  /** How much of the prompt the model has read; null once it answers. */
  readonly reading: PromptProgress | null;
  readonly hasEnded: boolean;
  /** A piece of text did not fit to what is here: the log has to be read from its beginning. */
  readonly hasGap: boolean;
}

export const ROOT = "";

export function emptyChat(id: string): ChatState {
  return {
    id,
    chat: null,
    offset: 0,
    messages: new Map(),
    questions: new Map(),
    steps: new Map(),
    elements: new Map(),
    children: new Map(),
    elementsOf: new Map(),
    asks: new Map(),
    feedback: new Map(),
    tabs: [],
    values: {},
    commands: [],
    modes: [],
    taskList: null,
    sidebar: null,
    run: null,
    queuePlace: 0,
    reading: null,
    hasEnded: false,
    hasGap: false,
  };
}

/** The question that waits for an answer; the latest where there are several. */
export function openAsk(state: ChatState): Ask | null {
  let open: Ask | null = null;
  for (const { ask, outcome } of state.asks.values()) if (outcome === "open") open = ask;
  return open;
}

/** The text of a message, as a person would copy it. */
export function textOf(message: Message): string {
  return message.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n");
}
