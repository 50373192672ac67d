import { describe, expect, it } from "vitest";
import type { Event, Message, Step } from "../src/protocol";
import { type ChatState, ROOT, emptyChat, openAsk, textOf } from "../src/state/chat";
import { reduce } from "../src/state/reduce";

function message(id: string, change: Partial<Message> = {}): Message {
  return {
    id,
    role: "assistant",
    author: "Kaiwa",
    parts: [{ kind: "text", text: "" }],
    parent_id: null,
    created_at: 0,
    state: "streaming",
    language: null,
    command: null,
    modes: {},
    actions: [],
    element_ids: [],
    tags: [],
    metadata: {},
    finish_reason: null,
    usage: null,
    timings: null,
    ...change,
  };
}

function step(id: string, change: Partial<Step> = {}): Step {
  return {
    id,
    name: id,
    type: "tool",
    parent_id: null,
    state: "in_use",
    started_at: 0,
    ended_at: null,
    input: "",
    output: "",
    input_language: null,
    output_language: null,
    show_input: true,
    is_open: false,
    closes_itself: false,
    icon: null,
    progress: null,
    element_ids: [],
    tags: [],
    metadata: {},
    ...change,
  };
}

const text = (start: number, piece: string, part = 0): Event => ({
  type: "text_added",
  message_id: "m",
  part,
  start,
  text: piece,
});
const added = (id: string, change: Partial<Message> = {}): Event => ({
  type: "message_added",
  message: message(id, change),
});

function after(...events: Event[]): ChatState {
  return reduce(emptyChat("c"), events, events.length);
}

describe("text", () => {
  it("is put behind what is there", () => {
    const state = after(added("m"), text(0, "Hello"), text(5, " there"));
    expect(textOf(state.messages.get("m")!)).toBe("Hello there");
  });

  it("that arrives twice changes nothing", () => {
    const state = after(added("m"), text(0, "Hello"), text(5, " there"), text(0, "Hello there"));
    expect(textOf(state.messages.get("m")!)).toBe("Hello there");
    expect(state.hasGap).toBe(false);
  });

  it("that does not fit asks for the log from its beginning", () => {
    expect(after(added("m"), text(3, "lo")).hasGap).toBe(true);
    expect(after(added("m"), text(0, "x", 4)).hasGap).toBe(true);
  });

  it("is counted in UTF-16 units, as the server does", () => {
    const state = after(added("m"), text(0, "😀"), text(2, "!"));
    expect(textOf(state.messages.get("m")!)).toBe("😀!");
  });

  it("also grows reasoning and the arguments of tools", () => {
    const parts: Message["parts"] = [
      { kind: "reasoning", text: "", started_at: 0, ended_at: null },
      { kind: "tool_call", id: "t", name: "search", arguments: "", result: null, is_error: false },
    ];
    const state = after(added("m", { parts }), text(0, "hm", 0), text(0, '{"q":', 1), text(5, "1}", 1));
    expect(state.messages.get("m")?.parts).toMatchObject([{ text: "hm" }, { arguments: '{"q":1}' }]);
  });
});

describe("order", () => {
  it("is that of arrival, and a step's own things are in it", () => {
    const state = after(
      added("m"),
      { type: "step_added", step: step("s") },
      { type: "step_added", step: step("t", { parent_id: "s" }) },
      added("n", { parent_id: "s" }),
    );
    expect(state.children.get(ROOT)).toEqual(["m", "s"]);
    expect(state.children.get("s")).toEqual(["t", "n"]);
  });

  it("does not change when a message is told of again", () => {
    const state = after(
      added("m"),
      added("n"),
      { type: "message_updated", message: message("m", { author: "Other" }) },
      added("m"),
    );
    expect(state.children.get(ROOT)).toEqual(["m", "n"]);
  });

  it("loses a step with all that is in it", () => {
    const state = after(
      { type: "step_added", step: step("s") },
      { type: "step_added", step: step("t", { parent_id: "s" }) },
      added("m", { parent_id: "t" }),
      { type: "step_removed", step_id: "s" },
    );
    expect([state.steps.size, state.messages.size, state.children.get(ROOT)]).toEqual([0, 0, []]);
  });
});

describe("runs", () => {
  const started: Event = { type: "run_started", run_id: "r", cause: "message", message_id: "q" };

  it("take their message out of the queue", () => {
    const state = after(added("q", { role: "user", state: "queued" }), started);
    expect(state.messages.get("q")?.state).toBe("done");
    expect(state.run).toEqual({ id: "r", messageId: "q" });
  });

  it("stand where they begin, and what they say is theirs, whatever was said meanwhile", () => {
    const second: Event = { type: "run_started", run_id: "s", cause: "message", message_id: "r" };
    const state = after(
      added("q", { role: "user", state: "queued" }),
      started,
      added("r", { role: "user", state: "queued" }),
      added("answer"),
      { type: "step_added", step: step("work") },
      added("other", { role: "user", state: "queued" }),
      { type: "run_finished", run_id: "r", outcome: "done" },
      second,
      added("next"),
    );
    expect(state.children.get(ROOT)).toEqual(["q", "answer", "work", "r", "next", "other"]);
    expect([...state.questions]).toEqual([
      ["q", "q"],
      ["answer", "q"],
      ["r", "r"],
      ["next", "r"],
    ]);
  });

  it("that the server did not survive say so of their answers", () => {
    const state = after(started, added("m"), { type: "run_finished", run_id: "r", outcome: "lost" });
    expect(state.messages.get("m")).toMatchObject({ state: "stopped", finish_reason: "lost" });
  });

  it("end what grows in them", () => {
    const end: Event = { type: "run_finished", run_id: "r", outcome: "stopped" };
    const state = after(started, added("m"), { type: "step_added", step: step("s") }, end);
    expect(state.run).toBeNull();
    expect(state.messages.get("m")?.state).toBe("stopped");
    expect(state.steps.get("s")?.state).toBe("stopped");
  });
});

it("keeps a question open until it is answered by its id", () => {
  const ask = {
    id: "k",
    kind: "text" as const,
    message_id: "m",
    asked_at: 0,
    expires_at: 9,
    actions: [],
    accept: [],
    max_files: 1,
    max_bytes: 0,
    element_id: null,
  };
  const state = after(added("m"), { type: "asked", ask });
  expect(openAsk(state)?.id).toBe("k");
  const answered = reduce(state, [{ type: "answered", ask_id: "k", outcome: "answered", summary: "yes" }], 3);
  expect(openAsk(answered)).toBeNull();
});

it("gives the same chat however its events are cut into frames", () => {
  const events: Event[] = [
    added("m"),
    text(0, "a"),
    text(1, "b"),
    { type: "step_added", step: step("s") },
    added("n"),
    text(2, "c"),
    { type: "message_finished", message_id: "m", state: "done", finish_reason: "stop", usage: null, timings: null },
    { type: "feedback_given", message_id: "m", value: 1, comment: "" },
    { type: "chat_ended" },
  ];
  const whole = after(...events);
  const single = events.reduce((state, event, i) => reduce(state, [event], i + 1), emptyChat("c"));
  expect(single).toEqual(whole);
});

it("never changes a state that was handed out", () => {
  const before = after(added("m"), text(0, "a"));
  const copy = structuredClone(before);
  reduce(before, [text(1, "b"), added("n"), { type: "step_added", step: step("s") }], 5);
  expect(before).toEqual(copy);
});
