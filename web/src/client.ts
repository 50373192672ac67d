/** What the page can do: each button, key and field ends here, as a command to the server. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { absolute, chatOf, newId } from "./address";
import { Connection } from "./connection/connection";
import { Refused } from "./connection/outbox";
import type { Answer, AuthInfo, Command, Frame, ListChats, Say } from "./protocol";
import { emptyChat, type SettingValue } from "./state/chat";
import { type Link, type PageState, initialPage, receive, withToast } from "./state/page";
import { Store, useSelected } from "./state/store";

type Draft<C> = C extends Command ? Omit<C, "id" | "chat_id"> : never;

export class Client {
  readonly store: Store<PageState>;
  private readonly connection: Connection;
  private readonly listings = new Map<string, ListChats>();
  /** Whether the chat in view has yet to be begun, and not to be opened. */
  private isNew: boolean;
  private openingId = "";
  /** Sees frames that are meant for the page around this one. */
  onOutwardFrame: (frame: Frame) => void = () => undefined;

  constructor() {
    const known = chatOf(location.pathname);
    this.isNew = known === null;
    this.store = new Store(initialPage(known ?? newId()));
    this.connection = new Connection(this);
    addEventListener("popstate", () =>
      this.show(chatOf(location.pathname) ?? newId(), chatOf(location.pathname) === null),
    );
  }

  start(): void {
    this.connection.connect();
  }

  // What the connection tells.

  linkChanged(link: Link): void {
    this.store.update((state) => ({ ...state, link }));
  }

  /** A connection that never opened may be one that wants a login. */
  async refused(): Promise<boolean> {
    const answer = await fetch(absolute("api/auth")).catch(() => null);
    if (answer?.ok !== true) return false;
    const auth = (await answer.json()) as AuthInfo;
    if (auth.is_required && auth.user === null) this.store.update((state) => ({ ...state, needsLogin: true, auth }));
    return true;
  }

  received(frames: readonly Frame[]): void {
    let state = this.store.get();
    for (const frame of frames) {
      state = receive(state, frame);
      if (frame.type === "chat_list") state = this.listed(state, frame);
      if (frame.type === "rejected" && frame.id === this.openingId) state = { ...state, problem: frame.problem };
      if (frame.type === "rejected" && frame.problem.code === "version") reloadOnce();
      if (frame.type === "logged_out") void this.refused();
      if (frame.type === "opened" && frame.chat.id === state.current.id) this.isNew = false;
      if (frame.type === "window_message" || frame.type === "call_function") this.onOutwardFrame(frame);
    }
    const hasGap = state.current.hasGap;
    if (hasGap) state = { ...state, current: { ...emptyChat(state.current.id), chat: state.current.chat } };
    this.store.set(state);
    if (hasGap) this.connection.reconnect();
  }

  greeting(): Command[] {
    return [this.opening(), this.listing("", null)];
  }

  // Chats.

  newChat(): void {
    this.go(newId(), true);
  }

  openChat(id: string): void {
    if (id !== this.store.get().current.id) this.go(id, false);
  }

  chooseProfile(profile: string): void {
    this.store.update((state) => ({ ...state, profile }));
    if (this.store.get().current.messages.size > 0 || this.store.get().profiles.length > 1) this.newChat();
  }

  search(search: string): void {
    this.store.update((state) => ({ ...state, search }));
    this.quietly(this.listing(search, null));
  }

  moreChats(): void {
    const { search, nextChats } = this.store.get();
    if (nextChats !== null) this.quietly(this.listing(search, nextChats));
  }

  renameChat(chat_id: string, title: string): void {
    this.quietly({ type: "rename_chat", id: newId(), chat_id, title });
  }

  deleteChat(chat_id: string): void {
    this.quietly({ type: "delete_chat", id: newId(), chat_id });
    if (chat_id === this.store.get().current.id) this.newChat();
  }

  // In the chat.

  say(
    text: string,
    options: { fileIds?: string[]; command?: string | null; modes?: Record<string, string> } = {},
  ): void {
    const { fileIds = [], command = null, modes = {} } = options;
    const say: Say = {
      type: "say",
      id: newId(),
      chat_id: this.store.get().current.id,
      message_id: newId(),
      text,
      file_ids: fileIds,
      command,
      modes,
    };
    this.store.update((state) => ({ ...state, unsent: new Map(state.unsent).set(say.message_id, say) }));
    this.rememberPlace();
    this.connection.send(say).catch((reason: unknown) => {
      const unsent = new Map(this.store.get().unsent);
      unsent.delete(say.message_id);
      this.store.update((state) => ({ ...state, unsent }));
      this.explain(reason);
    });
  }

  stop(): void {
    this.command({ type: "stop" });
  }

  withdraw(message_id: string): void {
    this.command({ type: "withdraw_message", message_id });
  }

  edit(message_id: string, text: string): void {
    this.command({ type: "edit_message", message_id, text });
  }

  regenerate(message_id: string): void {
    this.command({ type: "regenerate", message_id });
  }

  press(action_id: string): void {
    this.command({ type: "press", action_id });
  }

  answer(ask_id: string, answer: Pick<Answer, "text" | "file_ids" | "action_id" | "values">): void {
    this.command({ type: "answer", ask_id, ...answer });
  }

  rate(message_id: string, value: -1 | 0 | 1, comment = ""): void {
    this.command({ type: "rate", message_id, value, comment });
  }

  changeSettings(values: Record<string, SettingValue>, is_final: boolean): void {
    this.command({ type: "change_settings", values, is_final });
  }

  endChat(): void {
    this.command({ type: "end_chat" });
  }

  postWindowMessage(data: unknown): void {
    this.command({ type: "post_window_message", data });
  }

  callReturned(call_id: string, result: unknown, error: string | null): void {
    this.command({ type: "call_returned", call_id, result, error });
  }

  // The page itself.

  /** After a login: the connection is made anew, as that person. */
  loggedIn(): void {
    this.connection.reconnect();
  }

  async logOut(): Promise<void> {
    await fetch(absolute("api/logout"), { method: "POST" });
    location.assign(absolute("."));
  }

  toast(kind: "info" | "success" | "warning" | "error", text: string): void {
    this.store.update((state) => withToast(state, kind, text));
  }

  dismiss(toast: number): void {
    this.store.update((state) => ({ ...state, toasts: state.toasts.filter(({ id }) => id !== toast) }));
  }

  private go(id: string, isNew: boolean): void {
    history.pushState(null, "", absolute(isNew ? "." : `chat/${id}`));
    this.show(id, isNew);
  }

  private show(id: string, isNew: boolean): void {
    const before = this.store.get().current.id;
    this.isNew = isNew;
    this.store.update((state) => ({ ...state, current: emptyChat(id), problem: null, unsent: new Map() }));
    // Without a connection nothing is said: the next greeting opens the chat that is then in view.
    if (before !== id) this.connection.tell({ type: "leave_chat", id: newId(), chat_id: before });
    this.connection.tell(this.opening());
  }

  /** The address names the chat once there is something in it to come back to. */
  private rememberPlace(): void {
    const { current } = this.store.get();
    if (chatOf(location.pathname) !== current.id) history.replaceState(null, "", absolute(`chat/${current.id}`));
  }

  private opening(): Command {
    const { current, profile } = this.store.get();
    const id = newId();
    this.openingId = id;
    if (this.isNew) return { type: "new_chat", id, chat_id: current.id, profile };
    return { type: "open_chat", id, chat_id: current.id, since: current.offset };
  }

  private listing(search: string, before: string | null): ListChats {
    const listing: ListChats = { type: "list_chats", id: newId(), search, before };
    this.listings.set(listing.id, listing);
    return listing;
  }

  private listed(state: PageState, frame: Extract<Frame, { type: "chat_list" }>): PageState {
    this.connection.outbox.accepted(frame.id);
    const asked = this.listings.get(frame.id);
    this.listings.delete(frame.id);
    if (asked === undefined || asked.search !== state.search) return state;
    const chats = asked.before == null ? frame.chats : [...state.chats, ...frame.chats];
    return { ...state, chats, nextChats: frame.next };
  }

  private command(draft: Draft<Command>): void {
    this.quietly({ ...draft, id: newId(), chat_id: this.store.get().current.id } as Command);
  }

  /** Sends a command of which only a refusal is told. */
  private quietly(command: Command): void {
    this.connection.send(command).catch((reason: unknown) => this.explain(reason));
  }

  private explain(reason: unknown): void {
    if (!(reason instanceof Refused)) throw reason;
    const { message, hint } = reason.problem;
    this.toast("error", hint ? `${message} ${hint}` : message);
  }
}

/** The page of another version than its server: a newer one is there to be loaded. */
function reloadOnce(): void {
  const key = "kaiwa-reloaded";
  if (sessionStorage.getItem(key) !== null) return;
  sessionStorage.setItem(key, "1");
  location.reload();
}

const ClientContext = createContext<Client | null>(null);
export const ClientProvider = ClientContext.Provider;

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (client === null) throw new Error("A component that talks to the server is drawn outside of <ClientProvider>.");
  return client;
}

/** The piece of the page's state that `select` picks. */
export function usePage<T>(select: (state: PageState) => T): T {
  return useSelected(useClient().store, select);
}
