/** A chat's events, applied in order. The only place that knows what an event does. */

import type { Event, Message, Part, Step, TextAdded } from "../protocol";
import { type ChatState, ROOT } from "./chat";

type Draft = { -readonly [K in keyof ChatState]: ChatState[K] };
type MapKey = "messages" | "questions" | "steps" | "elements" | "children" | "elementsOf" | "asks" | "feedback";

/** The chat after `events`. Maps are copied once per call and only where something changes. */
export function reduce(state: ChatState, events: readonly Event[], offset: number): ChatState {
  const change = new Change(state);
  for (const event of events) apply(change, event);
  change.draft.offset = offset;
  return change.draft;
}

class Change {
  readonly draft: Draft;
  private readonly copied = new Set<MapKey>();

  constructor(state: ChatState) {
    this.draft = { ...state };
  }

  put<K extends MapKey>(
    key: K,
    id: string,
    value: ChatState[K] extends ReadonlyMap<string, infer V> ? V : never,
  ): void {
    this.own(key).set(id, value);
  }

  drop(key: MapKey, id: string): void {
    this.own(key).delete(id);
  }

  private own(key: MapKey): Map<string, unknown> {
    if (!this.copied.has(key)) {
      this.copied.add(key);
      Object.assign(this.draft, { [key]: new Map<string, unknown>(this.draft[key]) });
    }
    return this.draft[key] as Map<string, unknown>;
  }

  /** Puts an id at the end of its parent's children, unless it is there; what waits stays behind all else. */
  place(parent: string | null, id: string): void {
    const key = parent !== null && this.draft.steps.has(parent) ? parent : ROOT;
    const siblings = this.draft.children.get(key) ?? [];
    if (siblings.includes(id)) return;
    const end = this.waits(id) ? siblings.length : siblings.findLastIndex((other) => !this.waits(other)) + 1;
    this.put("children", key, siblings.toSpliced(end, 0, id));
  }

  private waits(id: string): boolean {
    return this.draft.messages.get(id)?.state === "queued";
  }

  displace(id: string): void {
    for (const [key, ids] of this.draft.children) {
      if (ids.includes(id))
        this.put(
          "children",
          key,
          ids.filter((other) => other !== id),
        );
    }
  }

  message(id: string, change: (message: Message) => Message): void {
    const message = this.draft.messages.get(id);
    if (message !== undefined) this.put("messages", id, change(message));
  }

  step(id: string, change: (step: Step) => Step): void {
    const step = this.draft.steps.get(id);
    if (step !== undefined) this.put("steps", id, change(step));
  }
}

function apply(change: Change, event: Event): void {
  const { draft } = change;
  switch (event.type) {
    case "message_added":
    case "message_updated":
      change.put("messages", event.message.id, event.message);
      if (event.type === "message_added") place(change, event.message);
      return;
    case "message_removed":
      change.drop("messages", event.message_id);
      change.drop("questions", event.message_id);
      return change.displace(event.message_id);
    case "message_finished":
      return change.message(event.message_id, (message) => ({
        ...message,
        state: event.state,
        finish_reason: event.finish_reason,
        usage: event.usage,
        timings: event.timings,
      }));
    case "part_added":
      draft.reading = null;
      return change.message(event.message_id, (message) => withPart(message, event.index, event.part));
    case "text_added":
      draft.reading = null;
      return addText(change, event);
    case "step_added":
      change.put("steps", event.step.id, event.step);
      return change.place(event.step.parent_id, event.step.id);
    case "step_updated":
      return change.put("steps", event.step.id, event.step);
    case "step_removed":
      return removeStep(change, event.step_id);
    case "step_text":
      return change.step(event.step_id, (step) => {
        const text = joined(step[event.field], event.start, event.text);
        if (text === null) draft.hasGap = true;
        return { ...step, [event.field]: text ?? step[event.field] };
      });
    case "step_progress":
      return change.step(event.step_id, (step) => ({ ...step, progress: event.progress }));
    case "element_added": {
      const owner = event.element.for_id ?? ROOT;
      const others = draft.elementsOf.get(owner) ?? [];
      change.put("elements", event.element.id, event.element);
      if (!others.includes(event.element.id)) change.put("elementsOf", owner, [...others, event.element.id]);
      return;
    }
    case "element_removed": {
      const owner = draft.elements.get(event.element_id)?.for_id ?? ROOT;
      const others = draft.elementsOf.get(owner) ?? [];
      change.put(
        "elementsOf",
        owner,
        others.filter((id) => id !== event.element_id),
      );
      return change.drop("elements", event.element_id);
    }
    case "action_added":
      return change.message(event.action.for_id ?? "", (message) => ({
        ...message,
        actions: [...message.actions.filter(({ id }) => id !== event.action.id), event.action],
      }));
    case "action_removed":
      for (const message of draft.messages.values()) {
        if (!message.actions.some(({ id }) => id === event.action_id)) continue;
        const actions = message.actions.filter(({ id }) => id !== event.action_id);
        change.put("messages", message.id, { ...message, actions });
      }
      return;
    case "asked":
      return change.put("asks", event.ask.id, { ask: event.ask, outcome: "open", summary: "" });
    case "answered": {
      const asked = draft.asks.get(event.ask_id);
      if (asked) change.put("asks", event.ask_id, { ...asked, outcome: event.outcome, summary: event.summary });
      return;
    }
    case "run_started":
      draft.run = { id: event.run_id, messageId: event.message_id };
      draft.hasEnded = false;
      return begin(change, event.message_id);
    case "run_finished":
      return finishRun(change, event.outcome);
    case "settings_defined":
      draft.tabs = event.tabs;
      draft.values = event.values;
      return;
    case "settings_changed":
      draft.values = event.values;
      return;
    case "commands_defined":
      draft.commands = event.commands;
      return;
    case "modes_defined":
      draft.modes = event.modes;
      return;
    case "task_list_changed":
      draft.taskList = event.task_list;
      return;
    case "sidebar_changed":
      draft.sidebar = event.sidebar;
      return;
    case "feedback_given":
      return change.put("feedback", event.message_id, event.value);
    case "chat_ended":
      draft.hasEnded = true;
      draft.run = null;
      return;
  }
}

/** A new message stands behind what is there, and answers what its run is about. */
function place(change: Change, message: Message): void {
  change.place(message.parent_id, message.id);
  const question = change.draft.run?.messageId ?? null;
  if (message.role !== "user" && question !== null) change.put("questions", message.id, question);
}

/** A message that waited stands where its answer begins: behind what was said in the runs before it. */
function begin(change: Change, id: string | null): void {
  const message = id === null ? undefined : change.draft.messages.get(id);
  if (message === undefined) return;
  change.drop("messages", message.id);
  change.put("messages", message.id, message.state === "queued" ? { ...message, state: "done" } : message);
  change.put("questions", message.id, message.id);
  change.displace(message.id);
  change.place(message.parent_id, message.id);
}

function withPart(message: Message, index: number, part: Part): Message {
  const parts = [...message.parts];
  parts[index] = part;
  return { ...message, parts };
}

function addText(change: Change, event: TextAdded): void {
  change.message(event.message_id, (message) => {
    const part = message.parts[event.part];
    const before = part === undefined ? null : part.kind === "tool_call" ? part.arguments : part.text;
    const text = before === null ? null : joined(before, event.start, event.text);
    if (part === undefined || text === null) {
      change.draft.hasGap = true;
      return message;
    }
    return withPart(message, event.part, part.kind === "tool_call" ? { ...part, arguments: text } : { ...part, text });
  });
}

/** `text` put behind the first `start` units of `before`; null where something between them is missing. */
function joined(before: string, start: number, text: string): string | null {
  if (start === before.length) return before + text;
  return start < before.length ? before.slice(0, start) + text : null;
}

function removeStep(change: Change, id: string): void {
  for (const child of change.draft.children.get(id) ?? []) {
    if (change.draft.steps.has(child)) removeStep(change, child);
    else change.drop("messages", child);
  }
  change.drop("children", id);
  change.drop("steps", id);
  change.displace(id);
}

/** Messages and steps that grow, end with their run. */
function finishRun(change: Change, outcome: "done" | "stopped" | "failed" | "lost"): void {
  change.draft.run = null;
  change.draft.queuePlace = 0;
  change.draft.reading = null;
  const broken = outcome !== "done";
  for (const message of change.draft.messages.values()) {
    if (message.state === "streaming") {
      const ending = outcome === "lost" ? { finish_reason: "lost" } : {};
      change.put("messages", message.id, { ...message, ...ending, state: broken ? "stopped" : "done" });
    }
  }
  for (const step of change.draft.steps.values()) {
    if (step.state === "in_use") change.put("steps", step.id, { ...step, state: broken ? "stopped" : "used" });
  }
}
