"""Events: what happens in a chat. They are kept in its log, in order, and a page draws the chat from nothing else."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from kaiwa.apps.protocol.records import (
    Action,
    Ask,
    Element,
    Message,
    MessageState,
    Mode,
    Part,
    Progress,
    Record,
    Sidebar,
    SlashCommand,
    Step,
    TaskList,
    Timings,
    Usage,
)
from kaiwa.apps.protocol.widgets import SettingValue, Tab


class MessageAdded(Record):
    """A message, which may still grow."""

    type: Literal["message_added"] = "message_added"
    message: Message


class MessageUpdated(Record):
    """The message as it is now; it takes the place of the one with its id."""

    type: Literal["message_updated"] = "message_updated"
    message: Message


class MessageRemoved(Record):
    """The message is gone."""

    type: Literal["message_removed"] = "message_removed"
    message_id: str


class MessageFinished(Record):
    """The message grows no more."""

    type: Literal["message_finished"] = "message_finished"
    message_id: str
    state: MessageState
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None


class PartAdded(Record):
    """One more part of a message, at `index`; or what takes the place of the part that is there."""

    type: Literal["part_added"] = "part_added"
    message_id: str
    index: int
    part: Part


class TextAdded(Record):
    """More text of a part: of a text, of reasoning, or of a tool call's arguments.

    `start` is how many UTF-16 units it already has (a string's `length` in JavaScript).
    """

    type: Literal["text_added"] = "text_added"
    message_id: str
    part: int
    start: int
    text: str


class StepAdded(Record):
    """A step, in use."""

    type: Literal["step_added"] = "step_added"
    step: Step


class StepUpdated(Record):
    """The step as it is now: its state, input, output, times."""

    type: Literal["step_updated"] = "step_updated"
    step: Step


class StepRemoved(Record):
    """The step is gone, and what is in it."""

    type: Literal["step_removed"] = "step_removed"
    step_id: str


class StepText(Record):
    """More text of a step's input or output; `start` is as in `TextAdded`."""

    type: Literal["step_text"] = "step_text"
    step_id: str
    field: Literal["input", "output"]
    start: int
    text: str


class StepProgress(Record):
    """How far a step is."""

    type: Literal["step_progress"] = "step_progress"
    step_id: str
    progress: Progress


class ElementAdded(Record):
    """An element, which belongs to the message or step `element.for_id`, or to the sidebar."""

    type: Literal["element_added"] = "element_added"
    element: Element


class ElementRemoved(Record):
    """The element is gone."""

    type: Literal["element_removed"] = "element_removed"
    element_id: str


class ActionAdded(Record):
    """One more button below the message `action.for_id`."""

    type: Literal["action_added"] = "action_added"
    action: Action


class ActionRemoved(Record):
    """The button is gone."""

    type: Literal["action_removed"] = "action_removed"
    action_id: str


class Asked(Record):
    """The app waits for an answer."""

    type: Literal["asked"] = "asked"
    ask: Ask


class Answered(Record):
    """The app waits no more. `summary` is what a person answered, in words; its message follows where it is text."""

    type: Literal["answered"] = "answered"
    ask_id: str
    outcome: Literal["answered", "timed_out", "cancelled", "lost"]
    summary: str = ""


class RunStarted(Record):
    """The app works, on the message `message_id` where it is about one: that is queued no more."""

    type: Literal["run_started"] = "run_started"
    run_id: str
    cause: Literal["start", "message", "resume", "action", "settings", "window_message"]
    message_id: str | None = None


class RunFinished(Record):
    """The app has done what it did; "lost" is a run whose server ended. Messages and steps that grow, end with it."""

    type: Literal["run_finished"] = "run_finished"
    run_id: str
    outcome: Literal["done", "stopped", "failed", "lost"]


class SettingsDefined(Record):
    """The chat's settings, and what they are."""

    type: Literal["settings_defined"] = "settings_defined"
    tabs: tuple[Tab, ...]
    values: dict[str, SettingValue]


class SettingsChanged(Record):
    """What the settings are now."""

    type: Literal["settings_changed"] = "settings_changed"
    values: dict[str, SettingValue]


class CommandsDefined(Record):
    """The commands that a message may carry."""

    type: Literal["commands_defined"] = "commands_defined"
    commands: tuple[SlashCommand, ...]


class ModesDefined(Record):
    """The choices beside the composer."""

    type: Literal["modes_defined"] = "modes_defined"
    modes: tuple[Mode, ...]


class TaskListChanged(Record):
    """The task list as it is now; None takes it away."""

    type: Literal["task_list_changed"] = "task_list_changed"
    task_list: TaskList | None


class SidebarChanged(Record):
    """The sidebar as it is now; None closes it."""

    type: Literal["sidebar_changed"] = "sidebar_changed"
    sidebar: Sidebar | None


class FeedbackGiven(Record):
    """What a person thinks of a message; `value` is 1, -1, or 0 where it was taken back."""

    type: Literal["feedback_given"] = "feedback_given"
    message_id: str
    value: Literal[-1, 0, 1]
    comment: str = ""


class ChatEnded(Record):
    """Nothing more can be said here until somebody opens the chat again."""

    type: Literal["chat_ended"] = "chat_ended"


Event = Annotated[
    MessageAdded
    | MessageUpdated
    | MessageRemoved
    | MessageFinished
    | PartAdded
    | TextAdded
    | StepAdded
    | StepUpdated
    | StepRemoved
    | StepText
    | StepProgress
    | ElementAdded
    | ElementRemoved
    | ActionAdded
    | ActionRemoved
    | Asked
    | Answered
    | RunStarted
    | RunFinished
    | SettingsDefined
    | SettingsChanged
    | CommandsDefined
    | ModesDefined
    | TaskListChanged
    | SidebarChanged
    | FeedbackGiven
    | ChatEnded,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Reads an event from what the log holds."""
