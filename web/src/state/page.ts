/** All that the page knows: the app, the list of chats, the chat in view, and how the connection is. */

import type { AppInfo, AuthInfo, Chat, Frame, Problem, Profile, Say, StarterCategory, Toast, User } from "../protocol";
import { type ChatState, emptyChat } from "./chat";
import { reduce } from "./reduce";

export type Link = "connecting" | "open" | "waiting";

export interface ToastState extends Omit<Toast, "type" | "chat_id"> {
  readonly id: number;
}

export interface PageState {
  readonly link: Link;
  readonly app: AppInfo | null;
  readonly user: User | null;
  readonly needsLogin: boolean;
  /** How to log in; null until somebody has to. */
  readonly auth: AuthInfo | null;
  readonly profiles: readonly Profile[];
  readonly profile: string | null;
  readonly starters: readonly StarterCategory[];
  readonly isBusy: boolean;
  readonly chats: readonly Chat[];
  readonly nextChats: string | null;
  readonly search: string;
  readonly current: ChatState;
  /** What was said and not yet answered by the server, by message id. */
  readonly unsent: ReadonlyMap<string, Say>;
  /** Why the chat in view cannot be shown. */
  readonly problem: Problem | null;
  readonly toasts: readonly ToastState[];
}

export function initialPage(chatId: string): PageState {
  return {
    link: "connecting",
    app: null,
    user: null,
    needsLogin: false,
    auth: null,
    profiles: [],
    profile: null,
    starters: [],
    isBusy: false,
    chats: [],
    nextChats: null,
    search: "",
    current: emptyChat(chatId),
    unsent: new Map(),
    problem: null,
    toasts: [],
  };
}

/** The page after a frame; frames that only the connection cares for change nothing. */
export function receive(state: PageState, frame: Frame): PageState {
  switch (frame.type) {
    case "welcome":
      return {
        ...state,
        app: frame.app,
        user: frame.user,
        needsLogin: false,
        isBusy: frame.is_busy,
        ...choices(state, frame.profiles, frame.starters),
      };
    case "profiles_changed":
      return { ...state, ...choices(state, frame.profiles, frame.starters) };
    case "chat_changed":
      return withChat(state, frame.chat);
    case "chat_removed":
      return { ...state, chats: state.chats.filter(({ id }) => id !== frame.chat_id) };
    case "opened": {
      if (frame.chat.id !== state.current.id) return state;
      const fresh = frame.since < state.current.offset ? emptyChat(frame.chat.id) : state.current;
      return { ...state, problem: null, current: { ...fresh, chat: frame.chat } };
    }
    case "events": {
      if (frame.chat_id !== state.current.id || frame.offset <= state.current.offset) return state;
      const current = reduce(state.current, frame.events, frame.offset);
      return { ...state, current, unsent: withoutArrived(state.unsent, current) };
    }
    case "queue_place":
      if (frame.chat_id !== state.current.id) return state;
      return { ...state, current: { ...state.current, queuePlace: frame.place } };
    case "prompt_progress":
      if (frame.chat_id !== state.current.id) return state;
      return { ...state, current: { ...state.current, reading: frame, queuePlace: 0 } };
    case "busy":
      return { ...state, isBusy: frame.is_busy };
    case "toast":
      if (frame.chat_id !== null && frame.chat_id !== state.current.id) return state;
      return withToast(state, frame.kind, frame.text);
    case "reloaded":
      return frame.problem === null ? state : withToast(state, "error", frame.problem.message);
    case "logged_out":
      return { ...state, needsLogin: true, user: null };
    case "chat_list":
    case "accepted":
    case "rejected":
    case "window_message":
    case "call_function":
      return state;
  }
}

let lastToast = 0;

export function withToast(state: PageState, kind: ToastState["kind"], text: string): PageState {
  lastToast += 1;
  return { ...state, toasts: [...state.toasts.slice(-3), { id: lastToast, kind, text }] };
}

function choices(state: PageState, profiles: Profile[], starters: StarterCategory[]): Partial<PageState> {
  const known = profiles.some(({ name }) => name === state.profile);
  const first = profiles.find((profile) => profile.is_default) ?? profiles[0];
  return { profiles, starters, profile: known ? state.profile : (first?.name ?? null) };
}

function withChat(state: PageState, chat: Chat): PageState {
  const current = chat.id === state.current.id ? { ...state.current, chat } : state.current;
  if (state.search !== "") return { ...state, current };
  const others = state.chats.filter(({ id }) => id !== chat.id);
  const chats = chat.num_messages > 0 ? [chat, ...others].sort((a, b) => b.updated_at - a.updated_at) : others;
  return { ...state, chats, current };
}

function withoutArrived(unsent: ReadonlyMap<string, Say>, chat: ChatState): ReadonlyMap<string, Say> {
  const left = [...unsent].filter(([id]) => !chat.messages.has(id));
  return left.length === unsent.size ? unsent : new Map(left);
}
