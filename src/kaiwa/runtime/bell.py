"""Bells: how one thread tells another, or a task of an event loop, that there is something to look at.

Ringing never waits, and many rings before somebody looks are one.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


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

        self._tower = _tower_of(asyncio.get_running_loop())
        self._event = asyncio.Event()
        self._has_rung = False

    @property
    def is_heard(self) -> bool:
        """Whether anybody can wait for it: nobody does once the event loop is closed."""
        return self._tower.is_open

    def ring(self) -> None:
        if not self._has_rung:
            self._has_rung = True
            self._tower.ring(self._event)

    async def wait(self) -> None:
        """As `ThreadBell.wait`."""
        await self._event.wait()
        self._event.clear()
        self._has_rung = False


class _Tower:
    """All bells of one event loop, which is woken once for those that ring before it looks."""

    def __init__(self, event_loop: asyncio.AbstractEventLoop) -> None:
        self._event_loop = weakref.ref(event_loop)  # which has this tower for as long as it lives
        self._rung: deque[asyncio.Event] = deque()
        self._is_called = False

    @property
    def is_open(self) -> bool:
        event_loop = self._event_loop()
        return event_loop is not None and not event_loop.is_closed()

    def ring(self, event: asyncio.Event) -> None:
        self._rung.append(event)
        if not self._is_called and (event_loop := self._event_loop()) is not None:
            self._is_called = True
            with contextlib.suppress(RuntimeError):  # it is closed
                event_loop.call_soon_threadsafe(self._set_all)

    def _set_all(self) -> None:
        self._is_called = False  # before it looks: whoever rings from now on calls again
        while self._rung:
            self._rung.popleft().set()


_towers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Tower] = weakref.WeakKeyDictionary()


def _tower_of(event_loop: asyncio.AbstractEventLoop) -> _Tower:
    return _towers.setdefault(event_loop, _Tower(event_loop))
