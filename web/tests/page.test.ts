import { expect, it } from "vitest";
import type { Chat, Frame } from "../src/protocol";
import { type PageState, initialPage, receive } from "../src/state/page";

const chat: Chat = {
  id: "c",
  title: "",
  profile: null,
  created_at: 0,
  updated_at: 1,
  num_messages: 0,
  run_state: "idle",
};
const opened = (since: number): Frame => ({ type: "opened", chat, since });
const ended = (offset: number, chat_id = "c"): Frame => ({
  type: "events",
  chat_id,
  offset,
  events: [{ type: "chat_ended" }],
});
const after = (...frames: Frame[]): PageState => frames.reduce(receive, initialPage("c"));

it("goes on where it was after a reconnect", () => {
  const state = after(opened(0), ended(3), opened(3), ended(5));
  expect(state.current.offset).toBe(5);
  expect(state.current.hasEnded).toBe(true);
});

it("forgets what it drew where the log begins anew", () => {
  const state = after(opened(0), ended(9), opened(0));
  expect([state.current.offset, state.current.hasEnded]).toEqual([0, false]);
});

it("takes no events twice, and none of another chat", () => {
  const state = after(opened(0), ended(3));
  expect(receive(state, ended(3))).toBe(state);
  expect(receive(state, ended(9, "other"))).toBe(state);
});

it("lists a chat once somebody has said something in it, the latest first", () => {
  const said = (id: string, updated_at: number): Frame => ({
    type: "chat_changed",
    chat: { ...chat, id, updated_at, num_messages: 1 },
  });
  expect(after(opened(0), { type: "chat_changed", chat }).chats).toEqual([]);
  const state = after(said("a", 5), said("b", 7), said("a", 9));
  expect(state.chats.map(({ id }) => id)).toEqual(["a", "b"]);
  expect(receive(state, { type: "chat_removed", chat_id: "a" }).chats.map(({ id }) => id)).toEqual(["b"]);
});

it("keeps the profile that somebody chose while profiles change", () => {
  const profile = (name: string, is_default = false) => ({
    name,
    display_name: name,
    description: "",
    icon: null,
    is_default,
    starters: [],
  });
  const changed = (...profiles: ReturnType<typeof profile>[]): Frame => ({
    type: "profiles_changed",
    profiles,
    starters: [],
  });
  const state = after(changed(profile("a"), profile("b", true)));
  expect(state.profile).toBe("b");
  expect(receive({ ...state, profile: "a" }, changed(profile("b"), profile("a"))).profile).toBe("a");
  expect(receive(state, changed(profile("z"))).profile).toBe("z");
});
