"""The page around this one, where an app is embedded: messages to it, and its functions."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kaiwa.apps.content.emitter import Emitter
from kaiwa.apps.context import current
from kaiwa.apps.protocol.frames import CallFunction
from kaiwa.apps.work.ids import new_id


async def send_window_message(data: Any) -> None:
    """Tell something to the page around this chat, by `postMessage`."""
    await Emitter(current().session).send_window_message(data)


@dataclass(frozen=True, slots=True)
class CopilotFunction:
    """A function that the page around this chat offers."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)

    async def acall(self, *, timeout: float = 60) -> Any:
        """Call it; what it gives back. Raises `TimeoutError` where nothing comes back within `timeout` seconds."""
        session = current().session
        call_id = new_id()
        waiting: Future[Any] = Future()
        session.calls[call_id] = waiting
        session.post(CallFunction(chat_id=session.chat_id, call_id=call_id, name=self.name, arguments=self.args))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(waiting), timeout)
        finally:
            session.calls.pop(call_id, None)
