// Made by `python -m kaiwa.apps.protocol` from src/kaiwa/apps/protocol. Change it there.

export const PROTOCOL_VERSION = 1;
export const MAX_TEXT_CHARS = 4000000;

/** The command with this `id` is done, or will be: what comes of it arrives as events. */
export interface Accepted {
  type: "accepted";
  id: string;
}

/** A button. Pressing it sends its id; what it means is known to the server only. */
export interface Action {
  id: string;
  name: string;
  label: string;
  tooltip: string;
  icon: string | null;
  for_id: string | null;
}

/** One more button below the message `action.for_id`. */
export interface ActionAdded {
  type: "action_added";
  action: Action;
}

/** The button is gone. */
export interface ActionRemoved {
  type: "action_removed";
  action_id: string;
}

/** Answer a question: with `text`, `file_ids`, an `action_id` or an element's `values`, as its kind wants. */
export interface Answer {
  id: string;
  chat_id: string;
  type: "answer";
  ask_id: string;
  text?: string | null;
  file_ids?: string[] | null;
  action_id?: string | null;
  values?: Record<string, unknown> | null;
}

/** The app waits no more. `summary` is what a person answered, in words; its message follows where it is text. */
export interface Answered {
  type: "answered";
  ask_id: string;
  outcome: "answered" | "timed_out" | "cancelled" | "lost";
  summary: string;
}

/** What a page says of the app, and what it may send. */
export interface AppInfo {
  name: string;
  description: string;
  author: string;
  can_upload: boolean;
  max_upload_bytes: number;
  max_upload_files: number;
  accept: string[];
  max_text_chars: number;
}

/**
 * A question to the person, which is there until it is answered by its id, runs out or is given up.
 *
 * `message_id` is the message that asks. "text" is answered with text, "file" with the ids of uploaded files, "action"
 * with the id of one of `actions`, "element" with the values of the custom element `element_id`.
 */
export interface Ask {
  id: string;
  kind: "text" | "file" | "action" | "element";
  message_id: string;
  asked_at: number;
  expires_at: number;
  actions: Action[];
  accept: string[];
  max_files: number;
  max_bytes: number;
  element_id: string | null;
}

/** The app waits for an answer. */
export interface Asked {
  type: "asked";
  ask: Ask;
}

/** `GET api/auth`: who is logged in, and how to. Without `is_required` everybody may chat. */
export interface AuthInfo {
  is_required: boolean;
  user: User | null;
  ways: LoginWay[];
}

/** Whether the app's own code holds up everybody for the moment; what is said now is kept and answered later. */
export interface Busy {
  type: "busy";
  is_busy: boolean;
}

/** Call a function of the page around this one; answered by `call_returned`. */
export interface CallFunction {
  type: "call_function";
  chat_id: string;
  call_id: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** What a function of the page around this one gave back, for the `call_id` of `call_function`. */
export interface CallReturned {
  id: string;
  chat_id: string;
  type: "call_returned";
  call_id: string;
  result?: unknown;
  error?: string | null;
}

/** Set some of the chat's settings; `is_final` is False while a person is still trying out. */
export interface ChangeSettings {
  id: string;
  chat_id: string;
  type: "change_settings";
  values: Record<string, boolean | number | string | string[] | null>;
  is_final?: boolean;
}

/** A row of the list of chats. `num_messages` counts those of people. */
export interface Chat {
  id: string;
  title: string;
  profile: string | null;
  created_at: number;
  updated_at: number;
  num_messages: number;
  run_state: "idle" | "queued" | "running" | "asking";
}

/** A chat of the list as it is now, or a new one. */
export interface ChatChanged {
  type: "chat_changed";
  chat: Chat;
}

/** Nothing more can be said here until somebody opens the chat again. */
export interface ChatEnded {
  type: "chat_ended";
}

/** A page of the list of chats, the latest first; `next` is None on the last page. */
export interface ChatList {
  type: "chat_list";
  id: string;
  chats: Chat[];
  next: string | null;
}

/** A chat that is no longer in the list. */
export interface ChatRemoved {
  type: "chat_removed";
  chat_id: string;
}

/** Ticked or not. */
export interface CheckboxWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "checkbox";
  initial: boolean;
}

/** One of several values; `value` is what the app gets, `label` what people see. */
export interface Choice {
  value: string;
  label: string;
}

export type Command = Hello | ListChats | NewChat | OpenChat | LeaveChat | EndChat | RenameChat | DeleteChat | Say | WithdrawMessage | EditMessage | Regenerate | Stop | Answer | Press | ChangeSettings | Rate | PostWindowMessage | CallReturned;

/** The commands that a message may carry. */
export interface CommandsDefined {
  type: "commands_defined";
  commands: SlashCommand[];
}

/** A day (2026-11-30), or with `is_range` the first and the last of several. */
export interface DateWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "date";
  initial: string | string[] | null;
  is_range: boolean;
  min_date: string | null;
  max_date: string | null;
  placeholder: string;
}

/** End the chat and forget it, files included. */
export interface DeleteChat {
  id: string;
  chat_id: string;
  type: "delete_chat";
}

/** Say something else instead of an earlier message: that and all after it are removed. */
export interface EditMessage {
  id: string;
  chat_id: string;
  type: "edit_message";
  message_id: string;
  text: string;
}

/**
 * Something to look at, beside, in or instead of a message. It never changes; a new one replaces it.
 *
 * `url` is relative to the page ("files/…"), or where the app says so an address elsewhere. Its content: UTF-8 text,
 * the file's own bytes, for "plotly" the figure as JSON, for "dataframe" `{"columns": […], "rows": [[…]]}`, and for
 * "custom" nothing: a page shows its `props`.
 */
export interface Element {
  id: string;
  kind: "text" | "image" | "pdf" | "audio" | "video" | "file" | "plotly" | "dataframe" | "custom";
  name: string;
  mime: string;
  url: string | null;
  num_bytes: number | null;
  display: "inline" | "side" | "page";
  size: "small" | "medium" | "large";
  language: string | null;
  for_id: string | null;
  props: Record<string, unknown>;
}

/** An element, which belongs to the message or step `element.for_id`, or to the sidebar. */
export interface ElementAdded {
  type: "element_added";
  element: Element;
}

/** The element is gone. */
export interface ElementRemoved {
  type: "element_removed";
  element_id: string;
}

/** End the chat: what runs is stopped, and its memory is given back. */
export interface EndChat {
  id: string;
  chat_id: string;
  type: "end_chat";
}

export type Event = MessageAdded | MessageUpdated | MessageRemoved | MessageFinished | PartAdded | TextAdded | StepAdded | StepUpdated | StepRemoved | StepText | StepProgress | ElementAdded | ElementRemoved | ActionAdded | ActionRemoved | Asked | Answered | RunStarted | RunFinished | SettingsDefined | SettingsChanged | CommandsDefined | ModesDefined | TaskListChanged | SidebarChanged | FeedbackGiven | ChatEnded;

/**
 * What happened in a chat. `offset` is that of the last event: what a page asks to go on after.
 *
 * Neighbouring pieces of text may arrive as one, so that there may be fewer events than offsets.
 */
export interface Events {
  type: "events";
  chat_id: string;
  offset: number;
  events: (MessageAdded | MessageUpdated | MessageRemoved | MessageFinished | PartAdded | TextAdded | StepAdded | StepUpdated | StepRemoved | StepText | StepProgress | ElementAdded | ElementRemoved | ActionAdded | ActionRemoved | Asked | Answered | RunStarted | RunFinished | SettingsDefined | SettingsChanged | CommandsDefined | ModesDefined | TaskListChanged | SidebarChanged | FeedbackGiven | ChatEnded)[];
}

/** What a person thinks of a message; `value` is 1, -1, or 0 where it was taken back. */
export interface FeedbackGiven {
  type: "feedback_given";
  message_id: string;
  value: -1 | 0 | 1;
  comment: string;
}

/** A file that a person uploaded. `url` is relative to the page. */
export interface File {
  id: string;
  name: string;
  mime: string;
  num_bytes: number;
  url: string;
}

export type Frame = Welcome | ProfilesChanged | Accepted | Rejected | ChatList | ChatChanged | ChatRemoved | Opened | Events | QueuePlace | PromptProgress | Busy | Toast | WindowMessage | CallFunction | Reloaded | LoggedOut;

/** The first command of every connection. Answered by `welcome`. */
export interface Hello {
  id: string;
  type: "hello";
  version: number;
  language?: string;
}

/** Follow the chat no longer. It goes on. */
export interface LeaveChat {
  id: string;
  chat_id: string;
  type: "leave_chat";
}

/** The latest chats in which somebody said something; those that contain `search`. Answered by `chat_list`. */
export interface ListChats {
  id: string;
  type: "list_chats";
  search?: string;
  before?: string | null;
}

/** The person's login has ended: the page shows the login again. */
export interface LoggedOut {
  type: "logged_out";
}

/** The body of `POST api/login`. Answered by `AuthInfo`, or 401 with a `Problem`. */
export interface Login {
  username: string;
  password: string;
}

/** A way to log in. "password" is `POST api/login`; "oauth" is a link to `url`, relative to the page. */
export interface LoginWay {
  kind: "password" | "oauth";
  id: string;
  name: string;
  url: string | null;
}

/**
 * One message. `parent_id` is the step in which it was sent; times are seconds since 1970.
 *
 * A user's message is "queued" until the run that answers it starts.
 */
export interface Message {
  id: string;
  role: "user" | "assistant" | "system" | "error";
  author: string;
  parts: (TextPart | ReasoningPart | ToolCallPart)[];
  parent_id: string | null;
  created_at: number;
  state: "queued" | "streaming" | "done" | "stopped" | "failed";
  language: string | null;
  command: string | null;
  modes: Record<string, string>;
  actions: Action[];
  element_ids: string[];
  tags: string[];
  metadata: Record<string, unknown>;
  finish_reason: string | null;
  usage: Usage | null;
  timings: Timings | null;
}

/** A message, which may still grow. */
export interface MessageAdded {
  type: "message_added";
  message: Message;
}

/** The message grows no more. */
export interface MessageFinished {
  type: "message_finished";
  message_id: string;
  state: "queued" | "streaming" | "done" | "stopped" | "failed";
  finish_reason: string | null;
  usage: Usage | null;
  timings: Timings | null;
}

/** The message is gone. */
export interface MessageRemoved {
  type: "message_removed";
  message_id: string;
}

/** The message as it is now; it takes the place of the one with its id. */
export interface MessageUpdated {
  type: "message_updated";
  message: Message;
}

/** A choice beside the composer that goes along with every message. */
export interface Mode {
  id: string;
  name: string;
  options: ModeOption[];
}

/** One value of a mode. */
export interface ModeOption {
  id: string;
  name: string;
  description: string;
  icon: string | null;
  is_default: boolean;
}

/** The choices beside the composer. */
export interface ModesDefined {
  type: "modes_defined";
  modes: Mode[];
}

/** Some of several. */
export interface MultiSelectWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "multi_select";
  initial: string[];
  choices: Choice[];
}

/** Begin a chat, whose id the page makes, and follow it. */
export interface NewChat {
  id: string;
  chat_id: string;
  type: "new_chat";
  profile?: string | null;
}

/** Any number, or none. */
export interface NumberWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "number";
  initial: number | null;
  placeholder: string;
}

/** Follow a chat: `opened`, then `events` after `since`, then those that happen. 0 is from the beginning. */
export interface OpenChat {
  id: string;
  chat_id: string;
  type: "open_chat";
  since?: number;
}

/**
 * The chat, followed from now on; its events after `since` come next.
 *
 * Where `since` is 0 although the page asked for more, the log begins anew: the page forgets what it drew.
 */
export interface Opened {
  type: "opened";
  chat: Chat;
  since: number;
}

export type Part = TextPart | ReasoningPart | ToolCallPart;

/** One more part of a message, at `index`; or what takes the place of the part that is there. */
export interface PartAdded {
  type: "part_added";
  message_id: string;
  index: number;
  part: TextPart | ReasoningPart | ToolCallPart;
}

/** What the page around this one said (`window.postMessage`). */
export interface PostWindowMessage {
  id: string;
  chat_id: string;
  type: "post_window_message";
  data: unknown;
}

/** Press a button. */
export interface Press {
  id: string;
  chat_id: string;
  type: "press";
  action_id: string;
}

/** What went wrong and what to do, in words for people. `code` is for programs. */
export interface Problem {
  code: string;
  message: string;
  hint: string;
}

/** A kind of chat to begin. */
export interface Profile {
  name: string;
  display_name: string;
  description: string;
  icon: string | null;
  is_default: boolean;
  starters: Starter[];
}

/** Profiles and starters, where they are ready after `welcome`, or have changed. */
export interface ProfilesChanged {
  type: "profiles_changed";
  profiles: Profile[];
  starters: StarterCategory[];
}

/** How far a long task is: `done` of `total` in `unit`s; `total` is 0 where it is not known. */
export interface Progress {
  stage: string;
  done: number;
  total: number;
  unit: string;
}

/** How much of the prompt the model has read before it answers, in tokens; `cached_tokens` it knew already. */
export interface PromptProgress {
  type: "prompt_progress";
  chat_id: string;
  read_tokens: number;
  prompt_tokens: number;
  cached_tokens: number;
}

/** Where the answer of this chat stands in the model's queue: 1 comes next, 0 waits no longer. */
export interface QueuePlace {
  type: "queue_place";
  chat_id: string;
  place: number;
}

/** One of several, all in view. */
export interface RadioWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "radio";
  initial: string | null;
  choices: Choice[];
}

/** Say what one thinks of a message. */
export interface Rate {
  id: string;
  chat_id: string;
  type: "rate";
  message_id: string;
  value: -1 | 0 | 1;
  comment?: string;
}

/** What a model thought before it answered; `ended_at` is None while it thinks. */
export interface ReasoningPart {
  kind: "reasoning";
  text: string;
  started_at: number;
  ended_at: number | null;
}

/** Remove what came after a message, and answer it again. */
export interface Regenerate {
  id: string;
  chat_id: string;
  type: "regenerate";
  message_id: string;
}

/** The command with this `id` changed nothing. `id` is None where it could not be read. */
export interface Rejected {
  type: "rejected";
  id: string | null;
  problem: Problem;
}

/** The app's code was read again; the chats go on. `problem` is why it could not be. */
export interface Reloaded {
  type: "reloaded";
  problem: Problem | null;
}

/** Give the chat another title. */
export interface RenameChat {
  id: string;
  chat_id: string;
  type: "rename_chat";
  title: string;
}

/** The app has done what it did; "lost" is a run whose server ended. Messages and steps that grow, end with it. */
export interface RunFinished {
  type: "run_finished";
  run_id: string;
  outcome: "done" | "stopped" | "failed" | "lost";
}

/** The app works, on the message `message_id` where it is about one: that is queued no more. */
export interface RunStarted {
  type: "run_started";
  run_id: string;
  cause: "start" | "message" | "resume" | "action" | "settings" | "window_message";
  message_id: string | null;
}

/** Say something. Where a run is going on, the message waits for it in the open. */
export interface Say {
  id: string;
  chat_id: string;
  type: "say";
  message_id: string;
  text: string;
  file_ids?: string[];
  command?: string | null;
  modes?: Record<string, string>;
}

/** One of several, in a list. */
export interface SelectWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "select";
  initial: string | null;
  choices: Choice[];
}

/** What the settings are now. */
export interface SettingsChanged {
  type: "settings_changed";
  values: Record<string, boolean | number | string | string[] | null>;
}

/** The chat's settings, and what they are. */
export interface SettingsDefined {
  type: "settings_defined";
  tabs: Tab[];
  values: Record<string, boolean | number | string | string[] | null>;
}

/** What stands beside the chat. `key` tells whether it is still the same. */
export interface Sidebar {
  title: string;
  element_ids: string[];
  key: string | null;
}

/** The sidebar as it is now; None closes it. */
export interface SidebarChanged {
  type: "sidebar_changed";
  sidebar: Sidebar | null;
}

/** Something to choose for a message, by `/` or by a button. */
export interface SlashCommand {
  id: string;
  description: string;
  icon: string | null;
  is_button: boolean;
  is_persistent: boolean;
  is_selected: boolean;
}

/** A number within bounds. */
export interface SliderWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "slider";
  initial: number;
  min: number;
  max: number;
  step: number;
}

/** A first message to choose instead of typing one. */
export interface Starter {
  label: string;
  message: string;
  command: string | null;
  icon: string | null;
}

/** Starters under one heading; `label` is empty for those under none. */
export interface StarterCategory {
  label: string;
  icon: string | null;
  starters: Starter[];
}

/** A piece of work that people may look into. It is in use, and then used (使用中, 使用済み), failed or stopped. */
export interface Step {
  id: string;
  name: string;
  type: string;
  parent_id: string | null;
  state: "in_use" | "used" | "failed" | "stopped";
  started_at: number;
  ended_at: number | null;
  input: string;
  output: string;
  input_language: string | null;
  output_language: string | null;
  show_input: boolean;
  is_open: boolean;
  closes_itself: boolean;
  icon: string | null;
  progress: Progress | null;
  element_ids: string[];
  tags: string[];
  metadata: Record<string, unknown>;
}

/** A step, in use. */
export interface StepAdded {
  type: "step_added";
  step: Step;
}

/** How far a step is. */
export interface StepProgress {
  type: "step_progress";
  step_id: string;
  progress: Progress;
}

/** The step is gone, and what is in it. */
export interface StepRemoved {
  type: "step_removed";
  step_id: string;
}

/** More text of a step's input or output; `start` is as in `TextAdded`. */
export interface StepText {
  type: "step_text";
  step_id: string;
  field: "input" | "output";
  start: number;
  text: string;
}

/** The step as it is now: its state, input, output, times. */
export interface StepUpdated {
  type: "step_updated";
  step: Step;
}

/** Stop the run. */
export interface Stop {
  id: string;
  chat_id: string;
  type: "stop";
}

/** On or off. */
export interface SwitchWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "switch";
  initial: boolean;
}

/** Widgets under one heading; `label` is empty where an app has no tabs. */
export interface Tab {
  id: string;
  label: string;
  widgets: (SwitchWidget | CheckboxWidget | SliderWidget | SelectWidget | RadioWidget | MultiSelectWidget | TextWidget | NumberWidget | TagsWidget | DateWidget)[];
}

/** Words that a person types. */
export interface TagsWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "tags";
  initial: string[];
}

/** A line of the task list; `for_id` is the message or step that it leads to. */
export interface Task {
  title: string;
  state: "ready" | "running" | "failed" | "done";
  for_id: string | null;
}

/** What an app is about to do, and what is done. */
export interface TaskList {
  status: string;
  tasks: Task[];
}

/** The task list as it is now; None takes it away. */
export interface TaskListChanged {
  type: "task_list_changed";
  task_list: TaskList | null;
}

/**
 * More text of a part: of a text, of reasoning, or of a tool call's arguments.
 *
 * `start` is how many UTF-16 units it already has (a string's `length` in JavaScript).
 */
export interface TextAdded {
  type: "text_added";
  message_id: string;
  part: number;
  start: number;
  text: string;
}

/** Markdown. */
export interface TextPart {
  kind: "text";
  text: string;
}

/** Text, of one line or several. */
export interface TextWidget {
  id: string;
  label: string;
  tooltip: string;
  description: string;
  is_disabled: boolean;
  kind: "text";
  initial: string;
  placeholder: string;
  is_multiline: boolean;
}

/** Seconds, and tokens per second, of an answer. */
export interface Timings {
  first_token_s: number;
  prompt_s: number;
  decode_s: number;
  prompt_tokens_per_s: number;
  decode_tokens_per_s: number;
}

/** A short word that goes by itself. */
export interface Toast {
  type: "toast";
  chat_id: string | null;
  kind: "info" | "success" | "warning" | "error";
  text: string;
}

/** A call that a model asked for. `arguments` is JSON text; `result` is None until there is one. */
export interface ToolCallPart {
  kind: "tool_call";
  id: string;
  name: string;
  arguments: string;
  result: string | null;
  is_error: boolean;
}

/** Token counts of an answer; `context_length` is 0 where it is not known. */
export interface Usage {
  prompt_tokens: number;
  cached_tokens: number;
  generated_tokens: number;
  reasoning_tokens: number;
  context_length: number;
}

/** Who is logged in. */
export interface User {
  identifier: string;
  display_name: string;
}

/** The answer to `hello`. A page of another `version` loads itself again. */
export interface Welcome {
  type: "welcome";
  version: number;
  app: AppInfo;
  user: User | null;
  profiles: Profile[];
  starters: StarterCategory[];
  is_busy: boolean;
}

export type Widget = SwitchWidget | CheckboxWidget | SliderWidget | SelectWidget | RadioWidget | MultiSelectWidget | TextWidget | NumberWidget | TagsWidget | DateWidget;

/** For the page around this one. */
export interface WindowMessage {
  type: "window_message";
  chat_id: string;
  data: unknown;
}

/** Take a message back that is still queued. */
export interface WithdrawMessage {
  id: string;
  chat_id: string;
  type: "withdraw_message";
  message_id: string;
}
