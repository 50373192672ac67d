"""Bells: how one thread tells another, or a task of an event loop, that there is something to look at.

Ringing never waits, and many rings before somebody looks are one.
"""

from __future__ import annotations

import contextlib
from queue import SimpleQueue
from typing import Protocol


class Bell(Protocol):
    """What rings. Whoever waits for it knows which of the two kinds it is."""

    def ring(self) -> None:
        """To be called from any thread, and from a finalizer."""
        ...


class ThreadBell:
    """A bell for a thread."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()
        self._has_rung = False

    def ring(self) -> None:
        if not self._has_rung:
            self._has_rung = True
            self._rings.put(None)

    def wait(self) -> None:
        """Wait for a ring, and look afterwards at what led to it. An interrupt from the keyboard ends the wait."""
        self._rings.get()
        self._has_rung = False


class TaskBell:
    """A bell for a task of the event loop that runs in this thread."""

    def __init__(self) -> None:
        import asyncio  # a command that answers one question must not wait for it

        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._has_rung = False

    def ring(self) -> None:
        if not self._has_rung:
            self._has_rung = True
            with contextlib.suppress(RuntimeError):  # the event loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """As `ThreadBell.wait`."""
        await self._event.wait()
        self._event.clear()
        self._has_rung = False
