"""Chats: what people do to them becomes runs of the app's hooks. All of it happens in the app's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kaiwa.apps.content.actions import Action
from kaiwa.apps.content.chat_settings import check, plain
from kaiwa.apps.content.feedback import Feedback
from kaiwa.apps.content.message import Message
from kaiwa.apps.content.uploaded import attach
from kaiwa.apps.context import Context
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import (
    Answered,
    ChatEnded,
    FeedbackGiven,
    MessageRemoved,
    RunFinished,
    SettingsChanged,
    StepRemoved,
)
from kaiwa.apps.protocol.widgets import SettingValue
from kaiwa.apps.storage.entries import DeleteChat, KeepText, KeepWaiting
from kaiwa.apps.storage.replay import replay
from kaiwa.apps.thread import thread_of
from kaiwa.apps.user import User
from kaiwa.apps.work.calling import Calling
from kaiwa.apps.work.chat_state import ChatState
from kaiwa.apps.work.runs import Job, Runs
from kaiwa.apps.work.session import Session
from kaiwa.apps.work.sessions import Active, Sessions


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who acts on a chat, and how they came to it."""

    user: User | None = None
    language: str = "en"
    profile: str | None = None


class Chats:
    """The chats of one app. `new_session` makes a session for a visitor's chat."""

    def __init__(
        self,
        calling: Calling,
        *,
        new_session: Callable[[str, Visitor], Session],
        is_followed: Callable[[str], bool],
    ) -> None:
        self._calling = calling
        self._new_session = new_session
        self.sessions = Sessions(is_followed=is_followed, end=self._end)

    async def begin(self, chat_id: str, visitor: Visitor) -> None:
        """A chat that is new."""
        await self.sessions.use(chat_id, lambda: self._make_new(chat_id, visitor))

    async def say(self, chat_id: str, visitor: Visitor, said: records.Message) -> None:
        """A person said something; it is in the log already."""
        active = await self._use(chat_id, visitor)
        active.session.is_used = True
        self._queue_message(active, said)

    async def wake(self, chat_id: str, visitor: Visitor) -> None:
        """A person looks at a chat in which messages wait since the server ended: they are answered now."""
        await self._use(chat_id, visitor)

    async def press(self, chat_id: str, visitor: Visitor, action: Action) -> None:
        """A person pressed a button."""
        active = await self._use(chat_id, visitor)
        active.runs.put(Job("action", lambda: self._calling.call("action_callback", action, name=action.name)))

    async def change_settings(
        self, chat_id: str, visitor: Visitor, values: Mapping[str, SettingValue], *, is_final: bool
    ) -> None:
        """A person set something, or while not `is_final` tries it out."""
        active = await self._use(chat_id, visitor)
        session = active.session
        check(session, values)
        merged = {**session.settings, **values}
        if not is_final:
            await self._calling.tell("on_settings_edit", plain(merged), context=Context(session))
            return
        session.settings = merged
        session.emit(SettingsChanged(values=merged))
        if self._calling.has("on_settings_update"):
            active.runs.put(Job("settings", lambda: self._calling.call("on_settings_update", plain(merged))))

    async def rate(self, chat_id: str, visitor: Visitor, feedback: Feedback) -> None:
        """A person said what they think of a message."""
        active = await self._use(chat_id, visitor)
        active.session.emit(
            FeedbackGiven(message_id=feedback.forId, value=feedback.value, comment=feedback.comment or "")
        )
        await self._calling.tell("on_feedback", feedback, context=Context(active.session))

    async def hear_window(self, chat_id: str, visitor: Visitor, data: Any) -> None:
        """The page around the chat said something."""
        active = await self._use(chat_id, visitor)
        active.runs.put(Job("window_message", lambda: self._calling.call("on_window_message", data)))

    async def edit(self, chat_id: str, visitor: Visitor, message_id: str, text: str | None) -> records.Message | None:
        """Remove what came after a message and answer it again, with another `text` where one is given.

        The message as it is now; None where the chat has no such message of a person.
        """
        active = await self._use(chat_id, visitor)
        session = active.session
        await active.runs.end()
        await asyncio.wrap_future(session.log.settled())
        state = await asyncio.to_thread(ChatState.replayed, replay(session.database, chat_id))
        said = state.messages.get(message_id)
        if said is None or said.role != "user":
            return None
        if text is not None:
            said = said.model_copy(update={"parts": (records.TextPart(text=text),)})
        self._cut(session, state, said)
        return said

    def answer_again(self, chat_id: str, said: records.Message) -> None:
        """Queue a message that `edit` gave, once it is in the log again."""
        active = self.sessions.find(chat_id)
        if active is not None:
            self._queue_message(active, said)

    async def end(self, chat_id: str) -> None:
        """A person ended the chat."""
        active = self.sessions.find(chat_id)
        if active is not None:
            for message_id in active.runs.waiting:
                active.runs.withdraw(message_id)
        await self.sessions.drop(chat_id)
        if active is not None:
            active.session.emit(ChatEnded())

    def _queue_message(self, active: Active, said: records.Message) -> None:
        session = active.session
        if active.runs.has(said.id) or any(message.id == said.id for message in session.history):
            return  # a session that was just made has found it in the log already

        async def work() -> None:
            message = Message.from_record(said)
            await attach(message, said, session)
            session.history.append(message)
            await self._calling.call("on_message", message)

        active.runs.put(Job("message", work, said.id))

    async def _use(self, chat_id: str, visitor: Visitor) -> Active:
        return await self.sessions.use(chat_id, lambda: self._resume(chat_id, visitor))

    async def _make_new(self, chat_id: str, visitor: Visitor) -> Active:
        active = self._activate(self._new_session(chat_id, visitor))
        if self._calling.has("on_chat_start"):
            active.runs.put(Job("start", lambda: self._calling.call("on_chat_start")))
        return active

    async def _resume(self, chat_id: str, visitor: Visitor) -> Active:
        """A session for a chat that has none any more: with what was said and set, and begun as the app says."""
        session = self._new_session(chat_id, visitor)
        await asyncio.wrap_future(session.log.settled())
        found = await asyncio.to_thread(session.database.chat, chat_id)
        state = await asyncio.to_thread(ChatState.replayed, replay(session.database, chat_id))
        session.is_used = True
        session.profile = found[0].profile if found else None
        session.tabs, session.settings, session.settings_before = state.tabs, state.settings, state.settings
        session.history = [
            Message.from_record(message)
            for message in state.messages.values()
            if message.role != "error" and message.state != "queued"
        ]
        active = self._activate(session)
        if self._calling.has("on_chat_resume"):
            thread = thread_of(session, found[0] if found else None, state)
            active.runs.put(Job("resume", lambda: self._calling.call("on_chat_resume", thread)))
        elif self._calling.has("on_chat_start"):
            active.runs.put(Job("start", lambda: self._calling.call("on_chat_start")))
        for message in state.waiting:
            self._queue_message(active, message)
        return active

    def _activate(self, session: Session) -> Active:
        return Active(session, Runs(session, lambda: self._calling.tell("on_stop", context=Context(session))))

    async def _end(self, active: Active) -> None:
        """The end of a session: of its runs, its questions, and the app's part in it."""
        session = active.session
        has_waiting = bool(active.runs.waiting)
        await active.runs.end()
        if has_waiting:
            session.emit(KeepWaiting())
        await self._calling.tell("on_chat_end", context=Context(session))
        if not session.is_used:
            session.emit(DeleteChat())

    def _cut(self, session: Session, state: ChatState, said: records.Message) -> None:
        """Take a message and everything after it out of the chat."""
        ids = list(state.order)
        later = ids[ids.index(said.id) :]
        messages = [message_id for message_id in later if message_id in state.messages]
        session.emit(
            *(MessageRemoved(message_id=message_id) for message_id in messages),
            *(KeepText(message_id, "") for message_id in messages),
            *(StepRemoved(step_id=step_id) for step_id in later if step_id in state.steps),
        )
        session.history = [message for message in session.history if message.id not in later]


def closing(state: ChatState) -> list[Answered | RunFinished | KeepWaiting]:
    """What is to be told of a chat whose server ended in the midst of it."""
    return [
        *(Answered(ask_id=ask_id, outcome="lost") for ask_id in state.asks),
        *(RunFinished(run_id=run_id, outcome="lost") for run_id in state.run_ids or ["lost"]),
        *([KeepWaiting()] if state.waiting else []),
    ]
