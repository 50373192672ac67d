"""Questions to the person, which the app awaits. They are in the chat's log, so that no lost connection loses them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kaiwa.apps.content.actions import Action
from kaiwa.apps.content.elements import CustomElement
from kaiwa.apps.content.message import Message, MessageType
from kaiwa.apps.context import Context, current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.commands import Answer
from kaiwa.apps.protocol.events import Answered, Asked
from kaiwa.apps.work.ids import new_id
from kaiwa.errors import AskTimedOut


@dataclass(frozen=True, slots=True)
class AskFileResponse:
    """An uploaded file. `path` is where its bytes are, `type` its MIME type, `size` their number."""

    id: str
    name: str
    path: str
    size: int
    type: str


class _Asking(Message):
    """A message that asks, and waits `timeout` seconds.

    `send` gives None where nobody answered in time, or raises `AskTimedOut` where `raise_on_timeout` is set.
    """

    ask_kind: Literal["text", "file", "action", "element"]

    def __init__(
        self,
        content: str,
        author: str | None = None,
        type: MessageType = "assistant_message",
        timeout: float = 60,
        raise_on_timeout: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(content, author, type=type, **more)
        self.timeout = timeout
        self.raise_on_timeout = raise_on_timeout

    async def _ask(self, **fields: Any) -> Answer | None:
        context = current()
        await Message.send(self)
        now = time.time()
        ask = records.Ask(
            id=new_id(),
            kind=self.ask_kind,
            message_id=self.id,
            asked_at=now,
            expires_at=now + self.timeout,
            **fields,
        )
        pending = context.session.asks.add(ask)
        context.emit(Asked(ask=ask))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(pending.answer), self.timeout)
        except TimeoutError:
            self._give_up(ask, context)
            return None
        except asyncio.CancelledError:
            if context.session.asks.take(ask.id) is not None:
                context.session.emit(Answered(ask_id=ask.id, outcome="cancelled"))
            raise

    def _give_up(self, ask: records.Ask, context: Context) -> None:
        if context.session.asks.take(ask.id) is not None:
            context.emit(Answered(ask_id=ask.id, outcome="timed_out"))
        if self.raise_on_timeout:
            raise AskTimedOut(
                f"nobody answered {self.content!r} within {self.timeout:g} seconds",
                hint="give people a longer timeout, or leave raise_on_timeout out and handle None",
            )


class AskUserMessage(_Asking):
    """Ask for text. `send` gives the answer as a dictionary with `output`."""

    ask_kind = "text"

    async def send(self) -> dict[str, Any] | None:  # type: ignore[override]  # what one gets is the answer
        """Ask, and wait for the answer."""
        answer = await self._ask()
        if answer is None:
            return None
        said = Message(answer.text or "", "User", type="user_message", id=answer.id)
        current().session.history.append(said)
        return said.to_dict()


class AskActionMessage(_Asking):
    """Ask for a choice among buttons. `send` gives the action as a dictionary with `name` and `payload`."""

    ask_kind = "action"

    def __init__(
        self,
        content: str,
        actions: Sequence[Action],
        author: str | None = None,
        timeout: float = 90,
        raise_on_timeout: bool = False,
    ) -> None:
        super().__init__(content, author, timeout=timeout, raise_on_timeout=raise_on_timeout)
        self.choices = list(actions)

    async def send(self) -> dict[str, Any] | None:  # type: ignore[override]  # what one gets is the answer
        """Ask, and wait for the choice."""
        for action in self.choices:
            action.for_id = self.id
        answer = await self._ask(actions=tuple(action.record() for action in self.choices))
        if answer is None:
            return None
        return next(action.to_dict() for action in self.choices if action.id == answer.action_id)


class AskFileMessage(_Asking):
    """Ask for files. `accept` are MIME types and endings, or a dictionary from types to endings."""

    ask_kind = "file"

    def __init__(
        self,
        content: str,
        accept: Sequence[str] | Mapping[str, Sequence[str]],
        max_size_mb: float = 2,
        max_files: int = 1,
        author: str | None = None,
        type: MessageType = "assistant_message",
        timeout: float = 90,
        raise_on_timeout: bool = False,
    ) -> None:
        super().__init__(content, author, type, timeout, raise_on_timeout)
        self.accept = accept
        self.max_size_mb = max_size_mb
        self.max_files = max_files

    async def send(self) -> list[AskFileResponse] | None:  # type: ignore[override]  # what one gets is the answer
        """Ask, and wait for the files."""
        accept = list(self.accept)
        if isinstance(self.accept, Mapping):
            accept += [ending for endings in self.accept.values() for ending in endings]
        answer = await self._ask(
            accept=tuple(accept), max_files=self.max_files, max_bytes=int(self.max_size_mb * 1_000_000)
        )
        if answer is None:
            return None
        session = current().session
        found = [await asyncio.to_thread(session.database.file, file_id) for file_id in answer.file_ids or ()]
        return [
            AskFileResponse(
                file.file_id,
                file.name,
                str(Path(session.files.path(session.chat_id, file.file_id))),
                file.num_bytes,
                file.mime,
            )
            for _, file in filter(None, found)
        ]


class AskElementMessage(_Asking):
    """Ask by a custom element. `send` gives the values that it submits, with `submitted`."""

    ask_kind = "element"

    def __init__(
        self,
        content: str,
        element: CustomElement,
        author: str | None = None,
        timeout: float = 90,
        raise_on_timeout: bool = False,
    ) -> None:
        super().__init__(content, author, timeout=timeout, raise_on_timeout=raise_on_timeout, elements=[element])
        self.element = element

    async def send(self) -> dict[str, Any] | None:  # type: ignore[override]  # what one gets is the answer
        """Ask, and wait for the values."""
        answer = await self._ask(element_id=self.element.id)
        return None if answer is None else {**(answer.values or {}), "submitted": True}
