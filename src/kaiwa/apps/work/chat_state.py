"""A chat as its events make it: what a page draws, what a resumed session begins with, what a test looks at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kaiwa.apps.protocol import events as e
from kaiwa.apps.protocol.records import (
    Action,
    Ask,
    Element,
    Message,
    Mode,
    Part,
    Sidebar,
    SlashCommand,
    Step,
    TaskList,
    ToolCallPart,
)
from kaiwa.apps.protocol.widgets import SettingValue, Tab

_STEP_STATES = {"done": "used", "stopped": "stopped", "failed": "failed", "lost": "stopped"}
_MESSAGE_STATES = {"done": "done", "stopped": "stopped", "failed": "failed", "lost": "stopped"}


@dataclass(slots=True)
class ChatState:
    """Everything that a chat shows."""

    messages: dict[str, Message] = field(default_factory=dict)
    """In the order in which they came; one that waited stands where its run began."""
    steps: dict[str, Step] = field(default_factory=dict)
    order: dict[str, None] = field(default_factory=dict)
    """The ids of both, in the same order."""
    elements: dict[str, Element] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    """Those that are not answered."""
    feedback: dict[str, int] = field(default_factory=dict)
    tabs: tuple[Tab, ...] = ()
    settings: dict[str, SettingValue] = field(default_factory=dict)
    commands: tuple[SlashCommand, ...] = ()
    modes: tuple[Mode, ...] = ()
    task_list: TaskList | None = None
    sidebar: Sidebar | None = None
    run_ids: list[str] = field(default_factory=list)
    """Those that are going on: one at most, but for runs that were lost."""
    is_ended: bool = False

    @classmethod
    def replayed(cls, happened: Iterable[e.Event]) -> ChatState:
        """The state after these events."""
        state = cls()
        for event in happened:
            state.apply(event)
        return state

    def apply(self, event: e.Event) -> None:
        """Take one more event into account."""
        match event:
            case e.MessageAdded(message=message) | e.MessageUpdated(message=message):
                self.messages[message.id] = message
                self.order.setdefault(message.id)
                self.actions |= {action.id: action for action in message.actions}
            case e.MessageRemoved(message_id=message_id):
                self.messages.pop(message_id, None)
                self.order.pop(message_id, None)
            case e.MessageFinished():
                changes = event.model_dump(exclude={"type", "message_id", "usage", "timings"})
                self._change(event.message_id, usage=event.usage, timings=event.timings, **changes)
            case e.PartAdded():
                parts = self.messages[event.message_id].parts
                self._change(event.message_id, parts=(*parts[: event.index], event.part, *parts[event.index + 1 :]))
            case e.TextAdded():
                parts = self.messages[event.message_id].parts
                grown = _grown(parts[event.part], event.text)
                self._change(event.message_id, parts=(*parts[: event.part], grown, *parts[event.part + 1 :]))
            case e.StepAdded(step=step) | e.StepUpdated(step=step):
                self.steps[step.id] = step
                self.order.setdefault(step.id)
            case e.StepRemoved(step_id=step_id):
                self.steps.pop(step_id, None)
                self.order.pop(step_id, None)
            case e.StepText(step_id=step_id, field=name, text=text):
                step = self.steps[step_id]
                self.steps[step_id] = step.model_copy(update={name: getattr(step, name) + text})
            case e.StepProgress(step_id=step_id, progress=progress):
                self.steps[step_id] = self.steps[step_id].model_copy(update={"progress": progress})
            case e.ElementAdded(element=element):
                self.elements[element.id] = element
            case e.ElementRemoved(element_id=element_id):
                self.elements.pop(element_id, None)
            case e.ActionAdded(action=action):
                self.actions[action.id] = action
            case e.ActionRemoved(action_id=action_id):
                self.actions.pop(action_id, None)
            case e.Asked(ask=ask):
                self.asks[ask.id] = ask
                self.actions |= {action.id: action for action in ask.actions}
            case e.Answered(ask_id=ask_id):
                self.asks.pop(ask_id, None)
            case e.RunStarted(run_id=run_id, message_id=started_by):
                self.is_ended = False
                self.run_ids.append(run_id)
                if started_by in self.messages:
                    self._begin(started_by)
            case e.RunFinished():
                self._finish_run(event)
            case e.SettingsDefined(tabs=tabs, values=values):
                self.tabs, self.settings = tabs, dict(values)
            case e.SettingsChanged(values=values):
                self.settings = dict(values)
            case e.CommandsDefined(commands=commands):
                self.commands = commands
            case e.ModesDefined(modes=modes):
                self.modes = modes
            case e.TaskListChanged(task_list=task_list):
                self.task_list = task_list
            case e.SidebarChanged(sidebar=sidebar):
                self.sidebar = sidebar
            case e.FeedbackGiven(message_id=message_id, value=value):
                self.feedback[message_id] = value
            case e.ChatEnded():
                self.is_ended = True

    @property
    def waiting(self) -> list[Message]:
        """The messages that no run has begun to answer."""
        return [message for message in self.messages.values() if message.state == "queued"]

    def _begin(self, message_id: str) -> None:
        message = self.messages.pop(message_id)
        self.messages[message_id] = message.model_copy(update={"state": "done"})
        self.order.pop(message_id)
        self.order[message_id] = None

    def _change(self, message_id: str, **changes: object) -> None:
        self.messages[message_id] = self.messages[message_id].model_copy(update=changes)

    def _finish_run(self, event: e.RunFinished) -> None:
        self.run_ids = [run_id for run_id in self.run_ids if run_id != event.run_id]
        for message in self.messages.values():
            if message.state == "streaming":
                reason = "lost" if event.outcome == "lost" else message.finish_reason
                self._change(message.id, state=_MESSAGE_STATES[event.outcome], finish_reason=reason)
        for step in self.steps.values():
            if step.state == "in_use":
                self.steps[step.id] = step.model_copy(update={"state": _STEP_STATES[event.outcome]})


def _grown(part: Part, text: str) -> Part:
    if isinstance(part, ToolCallPart):
        return part.model_copy(update={"arguments": part.arguments + text})
    return part.model_copy(update={"text": part.text + text})
