"""An answer that is being written, as its reader holds it: an iterator of events, in a thread or in an event loop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from typing import Self

from kaiwa.events import Event, Finished, Reply
from kaiwa.runtime.turns import Ticket


class Stream(Iterator[Event]):
    """The events of one answer; the last is `Finished`. The work is done as the events are read."""

    def __init__(self, events: Generator[Event], ticket: Ticket) -> None:
        self._events = events
        self._ticket = ticket

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def cancel(self) -> None:
        """End the answer within a step, from any thread or signal handler.

        Its reader still gets the text so far, and `Finished` with the reason "cancelled".
        """
        self._ticket.withdraw()

    def close(self) -> None:
        """End the answer within a step; its reader gets nothing more."""
        self._ticket.withdraw()
        with contextlib.suppress(ValueError):  # another thread is reading, and sees after its step that it is over
            self._events.close()


def collect(events: Iterable[Event]) -> Reply:
    """The whole answer."""
    *pieces, last = events
    assert isinstance(last, Finished)
    text = "".join(piece.text for piece in pieces)
    return Reply(text, last.finish_reason, last.usage, last.timings)


async def across(make_events: Callable[[], Iterator[Event]], stop: Callable[[], None]) -> AsyncGenerator[Event]:
    """Read `make_events()` in a thread of its own and yield its events here; the event loop never waits for them.

    `stop` is called when the reader has left, to end the work. What is not yet read waits in memory: an answer is no
    longer than the context, and a slow reader holds up nobody.
    """
    import asyncio  # a command that answers one question must not wait for it

    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()

    def post(item: Event | BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, item)
        except RuntimeError:  # the event loop was closed with the answer unread
            stop()

    def work() -> None:
        try:
            for event in make_events():
                post(event)
            post(None)
        except BaseException as error:  # noqa: BLE001  (the reader raises it)
            post(error)

    threading.Thread(target=work, name="kaiwa-answer").start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop()
