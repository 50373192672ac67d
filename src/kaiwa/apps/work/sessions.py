"""Sessions in use: made when a chat begins or goes on, kept while anybody needs them, ended after that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kaiwa.apps.work.runs import Runs
from kaiwa.apps.work.session import Session

MAX_IDLE_S = 3600.0
"""How long a chat that nobody looks at keeps its session."""
MAX_UNUSED_S = 60.0
"""The same for a chat in which nobody has said anything."""
SWEEP_S = 15.0


@dataclass(slots=True)
class Active:
    """A session, the runs in it, and when it was last needed."""

    session: Session
    runs: Runs
    used_at: float = field(default_factory=time.monotonic)


class Sessions:
    """Active chats by id, for the app's loop. Other threads may look one up.

    `is_followed` says whether a page shows a chat; `end` is awaited for one that is needed no longer.
    """

    def __init__(self, *, is_followed: Callable[[str], bool], end: Callable[[Active], Awaitable[None]]) -> None:
        self._is_followed = is_followed
        self._end = end
        self._active: dict[str, Active] = {}
        self._making: dict[str, asyncio.Lock] = {}

    def find(self, chat_id: str) -> Active | None:
        """The active chat, from any thread."""
        return self._active.get(chat_id)

    async def use(self, chat_id: str, make: Callable[[], Awaitable[Active]]) -> Active:
        """The active chat, made where there is none; once, however many ask."""
        async with self._making.setdefault(chat_id, asyncio.Lock()):
            active = self._active.get(chat_id)
            if active is None:
                active = self._active[chat_id] = await make()
        self._making.pop(chat_id, None)
        active.used_at = time.monotonic()
        return active

    async def drop(self, chat_id: str) -> None:
        """End the chat's session, where it has one."""
        active = self._active.pop(chat_id, None)
        if active is not None:
            await self._end(active)

    async def drop_all(self) -> None:
        """End all."""
        await asyncio.gather(*(self.drop(chat_id) for chat_id in list(self._active)))

    async def sweep_forever(self) -> None:
        """End what nobody has needed for long, again and again."""
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.sweep(time.monotonic())

    async def sweep(self, now: float) -> None:
        """End what nobody has needed for long."""
        for chat_id, active in list(self._active.items()):
            if self._is_followed(chat_id) or not active.runs.is_idle or len(active.session.asks):
                active.used_at = now
            elif now - active.used_at > (MAX_IDLE_S if active.session.is_used else MAX_UNUSED_S):
                await self.drop(chat_id)
