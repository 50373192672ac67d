"""Records: the things that an app and its page talk about, as plain data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """Immutable, and without fields that the protocol does not know."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_serialization_defaults_required=True,
        defer_build=True,  # an app starts before anybody sends it anything
    )


class Usage(Record):
    """Token counts of an answer; `context_length` is 0 where it is not known."""

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    reasoning_tokens: int = 0
    """Of the generated ones, those that the model thought."""
    context_length: int = 0


class Timings(Record):
    """Seconds, and tokens per second, of an answer."""

    first_token_s: float
    prompt_s: float
    decode_s: float
    prompt_tokens_per_s: float
    decode_tokens_per_s: float


class Progress(Record):
    """How far a long task is: `done` of `total` in `unit`s; `total` is 0 where it is not known."""

    stage: str
    done: float
    total: float
    unit: str = ""


class TextPart(Record):
    """Markdown."""

    kind: Literal["text"] = "text"
    text: str = ""


class ReasoningPart(Record):
    """What a model thought before it answered; `ended_at` is None while it thinks."""

    kind: Literal["reasoning"] = "reasoning"
    text: str = ""
    started_at: float = 0.0
    ended_at: float | None = None


class ToolCallPart(Record):
    """A call that a model asked for. `arguments` is JSON text; `result` is None until there is one."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: str = ""
    result: str | None = None
    is_error: bool = False


Part = Annotated[TextPart | ReasoningPart | ToolCallPart, Field(discriminator="kind")]


class Action(Record):
    """A button. Pressing it sends its id; what it means is known to the server only."""

    id: str
    name: str
    label: str = ""
    tooltip: str = ""
    icon: str | None = None
    for_id: str | None = None


MessageState = Literal["queued", "streaming", "done", "stopped", "failed"]


class Message(Record):
    """One message. `parent_id` is the step in which it was sent; times are seconds since 1970.

    A user's message is "queued" until the run that answers it starts.
    """

    id: str
    role: Literal["user", "assistant", "system", "error"]
    author: str
    parts: tuple[Part, ...] = ()
    parent_id: str | None = None
    created_at: float
    state: MessageState = "done"
    language: str | None = None
    """The whole text is code of this language."""
    command: str | None = None
    modes: dict[str, str] = {}
    actions: tuple[Action, ...] = ()
    element_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None


StepState = Literal["in_use", "used", "failed", "stopped"]


class Step(Record):
    """A piece of work that people may look into. It is in use, and then used (使用中, 使用済み), failed or stopped."""

    id: str
    name: str
    type: str = "undefined"
    parent_id: str | None = None
    state: StepState = "in_use"
    started_at: float
    ended_at: float | None = None
    input: str = ""
    output: str = ""
    input_language: str | None = None
    output_language: str | None = None
    """Markdown where it is None."""
    show_input: bool = True
    is_open: bool = False
    closes_itself: bool = False
    icon: str | None = None
    progress: Progress | None = None
    element_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


ElementKind = Literal["text", "image", "pdf", "audio", "video", "file", "plotly", "dataframe", "custom"]


class Element(Record):
    """Something to look at, beside, in or instead of a message. It never changes; a new one replaces it.

    `url` is relative to the page ("files/…"), or where the app says so an address elsewhere. Its content: UTF-8 text,
    the file's own bytes, for "plotly" the figure as JSON, for "dataframe" `{"columns": […], "rows": [[…]]}`, and for
    "custom" nothing: a page shows its `props`.
    """

    id: str
    kind: ElementKind
    name: str
    mime: str = ""
    url: str | None = None
    num_bytes: int | None = None
    display: Literal["inline", "side", "page"] = "inline"
    size: Literal["small", "medium", "large"] = "medium"
    language: str | None = None
    for_id: str | None = None
    props: dict[str, Any] = {}
    """What only one kind has: `page` of a pdf, `auto_play` of audio, a custom element's own."""


class Task(Record):
    """A line of the task list; `for_id` is the message or step that it leads to."""

    title: str
    state: Literal["ready", "running", "failed", "done"] = "ready"
    for_id: str | None = None


class TaskList(Record):
    """What an app is about to do, and what is done."""

    status: str = ""
    tasks: tuple[Task, ...] = ()


class Sidebar(Record):
    """What stands beside the chat. `key` tells whether it is still the same."""

    title: str = ""
    element_ids: tuple[str, ...] = ()
    key: str | None = None


class Ask(Record):
    """A question to the person, which is there until it is answered by its id, runs out or is given up.

    `message_id` is the message that asks. "text" is answered with text, "file" with the ids of uploaded files, "action"
    with the id of one of `actions`, "element" with the values of the custom element `element_id`.
    """

    id: str
    kind: Literal["text", "file", "action", "element"]
    message_id: str
    asked_at: float
    expires_at: float
    actions: tuple[Action, ...] = ()
    accept: tuple[str, ...] = ()
    """MIME types and file endings, as in HTML."""
    max_files: int = 1
    max_bytes: int = 0
    element_id: str | None = None


class File(Record):
    """A file that a person uploaded. `url` is relative to the page."""

    id: str
    name: str
    mime: str
    num_bytes: int
    url: str


class Starter(Record):
    """A first message to choose instead of typing one."""

    label: str
    message: str
    command: str | None = None
    icon: str | None = None


class StarterCategory(Record):
    """Starters under one heading; `label` is empty for those under none."""

    label: str
    icon: str | None = None
    starters: tuple[Starter, ...] = ()


class Profile(Record):
    """A kind of chat to begin."""

    name: str
    display_name: str
    description: str = ""
    """Markdown."""
    icon: str | None = None
    is_default: bool = False
    starters: tuple[Starter, ...] = ()


class SlashCommand(Record):
    """Something to choose for a message, by `/` or by a button."""

    id: str
    description: str = ""
    icon: str | None = None
    is_button: bool = False
    is_persistent: bool = False
    is_selected: bool = False


class ModeOption(Record):
    """One value of a mode."""

    id: str
    name: str
    description: str = ""
    icon: str | None = None
    is_default: bool = False


class Mode(Record):
    """A choice beside the composer that goes along with every message."""

    id: str
    name: str
    options: tuple[ModeOption, ...]


class User(Record):
    """Who is logged in."""

    identifier: str
    display_name: str


RunState = Literal["idle", "queued", "running", "asking"]


class Chat(Record):
    """A row of the list of chats. `num_messages` counts those of people."""

    id: str
    title: str
    profile: str | None = None
    created_at: float
    updated_at: float
    num_messages: int = 0
    run_state: RunState = "idle"


class Problem(Record):
    """What went wrong and what to do, in words for people. `code` is for programs."""

    code: str
    message: str
    hint: str = ""
