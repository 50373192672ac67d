"""Message: what an app says, at once or token by token, and what people say to it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Self, get_args

from kaiwa.apps.content.actions import Action
from kaiwa.apps.content.elements import Element
from kaiwa.apps.content.growing import Outcome
from kaiwa.apps.content.parts import Parts
from kaiwa.apps.context import Context, current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import ActionRemoved, MessageAdded, MessageFinished, MessageRemoved, MessageUpdated
from kaiwa.apps.protocol.records import Timings, ToolCallPart, Usage
from kaiwa.apps.storage.catalog import text_of
from kaiwa.apps.storage.entries import KeepText
from kaiwa.apps.work.ids import new_id
from kaiwa.errors import InvalidOption, did_you_mean

MessageType = Literal["user_message", "assistant_message", "system_message"]
_ROLES: dict[str, Literal["user", "assistant", "system"]] = {
    "user_message": "user",
    "assistant_message": "assistant",
    "system_message": "system",
}
_TOKENS_PER_BREATH = 64
"""After so many tokens in a row the event loop has a turn, for a stop or for another chat."""


class _State(Enum):
    NEW = "new"
    STREAMING = "streaming"
    SENT = "sent"
    REMOVED = "removed"


class Message:
    """One message of a chat.

        message = kw.Message("Let me see …")
        await message.send()
        async for token in tokens:
            await message.stream_token(token)
        await message.update()

    `content` is Markdown; a dictionary is shown as JSON. With a `language`, it is code. `author` is who says it, by
    default the app.

    Raises `InvalidOption` for an unknown `type`.
    """

    role: Literal["user", "assistant", "system", "error"]

    def __init__(
        self,
        content: str | Mapping[str, Any] = "",
        author: str | None = None,
        language: str | None = None,
        actions: Sequence[Action] | None = None,
        elements: Sequence[Element] | None = None,
        type: MessageType = "assistant_message",
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        command: str | None = None,
        modes: Mapping[str, str] | None = None,
        created_at: float | None = None,
    ) -> None:
        if type not in get_args(MessageType):
            raise InvalidOption(f"there is no message of type {type!r}", hint=did_you_mean(type, get_args(MessageType)))
        self.id = id or new_id()
        self.type = type
        self.role = _ROLES[type]
        self.author = author
        self.language = language
        self.actions = list(actions or ())
        self.elements = list(elements or ())
        self.metadata = dict(metadata or {})
        self.tags = list(tags or ())
        self.parent_id = parent_id
        self.command = command
        self.modes = dict(modes or {})
        self.created_at = time.time() if created_at is None else created_at
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.timings: Timings | None = None
        self._parts = Parts(self.id, self._readable(content))
        self._state = _State.NEW
        self._told: records.Message | None = None
        """How pages know the message, but for what its parts have grown since; None where they are to hear all."""
        self._context: Context | None = None
        self._num_tokens = 0

    @property
    def content(self) -> str:
        """What the message says."""
        return self._parts.text

    @content.setter
    def content(self, content: str | Mapping[str, Any]) -> None:
        self._parts.set_text(self._readable(content))
        self._told = None

    @property
    def streaming(self) -> bool:
        """Whether more of it may come."""
        return self._state is _State.STREAMING

    async def send(self) -> Self:
        """Show the message, or end its streaming."""
        if self._state is _State.NEW:
            await self._begin("done")
        else:
            await self._finish("done")
        return self

    async def update(self) -> bool:
        """Show the message as it is now, or end its streaming."""
        await self.send()
        return True

    async def stream_token(self, token: str, is_sequence: bool = False) -> None:
        """Show one more piece of the text, or with `is_sequence` what takes the place of all of it."""
        if is_sequence:
            self.content = token
            await self._tell_all()
        elif token:
            await self._grow("text", token)

    async def stream_reasoning(self, token: str) -> None:
        """Show one more piece of what a model thinks before it answers."""
        await self._grow("reasoning", token)

    async def show_tool_call(self, call: ToolCallPart) -> None:
        """Show that a model calls a tool, or what came of the call with the same id."""
        context = await self._streaming()
        context.emit(*self._parts.call(call))

    async def remove(self) -> None:
        """Take the message back."""
        context = current()
        self._state = _State.REMOVED
        context.session.growing.pop(self.id, None)
        context.session.history = [said for said in context.session.history if said.id != self.id]
        context.emit(MessageRemoved(message_id=self.id), KeepText(self.id, ""))

    async def remove_actions(self) -> None:
        """Take its buttons away."""
        current().emit(*(ActionRemoved(action_id=action.id) for action in self.actions))
        self.actions = []

    def end(self, outcome: Outcome) -> None:
        """End the streaming with the run that it began in."""
        if self._context is not None and self._state is _State.STREAMING:
            self._state = _State.SENT
            finished = self._finished(outcome)
            self._context.session.emit(*self._parts.end(), finished, KeepText(self.id, self.content))

    def record(self, state: records.MessageState = "done") -> records.Message:
        """As pages know it."""
        ended = {"finish_reason": self.finish_reason, "usage": self.usage, "timings": self.timings}
        return self._base(state).model_copy(update={"parts": self._parts.records(), **ended})

    @classmethod
    def from_record(cls, record: records.Message) -> Message:
        """A message that was sent earlier."""
        types: dict[str, MessageType] = {"user": "user_message", "system": "system_message"}
        message = cls(
            text_of(record),
            record.author,
            record.language,
            type=types.get(record.role, "assistant_message"),
            metadata=record.metadata,
            tags=record.tags,
            id=record.id,
            parent_id=record.parent_id,
            command=record.command,
            modes=record.modes,
            created_at=record.created_at,
        )
        message._state = _State.SENT
        return message

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the words of Chainlit's steps."""
        return {
            "id": self.id,
            "parentId": self.parent_id,
            "name": self.author,
            "type": self.type,
            "output": self.content,
            "language": self.language,
            "createdAt": self.created_at,
            "command": self.command,
            "modes": self.modes,
            "metadata": self.metadata,
            "tags": self.tags,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The message that `to_dict` gave."""
        return cls(
            data.get("output", ""),
            data.get("name"),
            data.get("language"),
            type=data.get("type", "assistant_message"),
            metadata=data.get("metadata"),
            tags=data.get("tags"),
            id=data.get("id"),
            parent_id=data.get("parentId"),
            command=data.get("command"),
            modes=data.get("modes"),
            created_at=data.get("createdAt"),
        )

    def _readable(self, content: str | Mapping[str, Any]) -> str:
        if isinstance(content, str):
            return content
        self.language = "json"
        return json.dumps(content, indent=2, ensure_ascii=False, default=str)

    def _base(self, state: records.MessageState) -> records.Message:
        """All but the parts, which grow, and what only the end knows."""
        return records.Message(
            id=self.id,
            role=self.role,
            author=self.author or "",
            parent_id=self.parent_id,
            created_at=self.created_at,
            state=state,
            language=self.language,
            command=self.command,
            modes=self.modes,
            actions=tuple(action.record() for action in self.actions),
            element_ids=tuple(element.id for element in self.elements),
            tags=tuple(self.tags),
            metadata=self.metadata,
        )

    async def _begin(self, state: Literal["streaming", "done"]) -> Context:
        """Show the message for the first time."""
        context = self._context = current()
        context.check()
        self.author = await context.session.rename_author(self.author or context.session.author)
        await self._send_attachments(context)
        self._state = _State.STREAMING if state == "streaming" else _State.SENT
        self._told = self._base("done")
        if state == "streaming":
            context.session.growing[self.id] = self
            context.emit(MessageAdded(message=self.record(state)))
        else:
            context.emit(MessageAdded(message=self.record(state)), KeepText(self.id, self.content))
        context.session.history.append(self)
        return context

    async def _streaming(self) -> Context:
        return self._context if self._context is not None else await self._begin("streaming")

    async def _grow(self, kind: Literal["text", "reasoning"], text: str) -> None:
        context = await self._streaming()
        growth, before = self._parts.grow(kind, text)
        if before:
            context.emit(*before)
        context.grow(growth, text)
        self._num_tokens += 1
        if self._num_tokens % _TOKENS_PER_BREATH == 0:
            await asyncio.sleep(0)

    async def _tell_all(self) -> None:
        if self._state is _State.NEW:
            await self._begin("streaming")
        else:
            await self._finish("streaming" if self._state is _State.STREAMING else "done")

    async def _finish(self, state: Literal["streaming", "done"]) -> None:
        """Show the message as it is now: with a word where pages know it, or as a whole."""
        context = self._context or current()
        await self._send_attachments(context)
        told = self._base("done")
        ends = self._parts.end() if state == "done" else []
        if told != self._told:
            self._told = told
            context.emit(MessageUpdated(message=self.record(state)))
        elif state == "done" and self._state is _State.STREAMING:
            context.emit(*ends, self._finished("done"))
        if state == "done":
            self._state = _State.SENT
            context.session.growing.pop(self.id, None)
            context.emit(KeepText(self.id, self.content))

    def _finished(self, outcome: Outcome) -> MessageFinished:
        return MessageFinished(
            message_id=self.id,
            state=outcome,
            finish_reason=self.finish_reason,
            usage=self.usage,
            timings=self.timings,
        )

    async def _send_attachments(self, context: Context) -> None:
        """Send elements that are new, and keep what buttons mean."""
        for element in self.elements:
            if element.for_id != self.id:
                await element.send(self.id)
        for action in self.actions:
            if action.for_id != self.id:
                action.for_id = self.id
                context.emit(action.entry())


class ErrorMessage(Message):
    """A message that says what went wrong."""

    role = "error"

    def __init__(self, content: str | Mapping[str, Any] = "", author: str | None = None) -> None:
        super().__init__(content, author)
        self.role = "error"
