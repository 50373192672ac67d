"""An answer that is being written, as its reader holds it: an iterator of events, in a thread or in an event loop.

The engine works ahead of its readers. What is not yet read waits in memory: an answer is no longer than the context,
and a slow reader holds up nobody.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Self

from kaiwa.events import Event, Finished, ReasoningDelta, Reply, ToolCall
from kaiwa.runtime.bell import TaskBell
from kaiwa.runtime.loop import Loop
from kaiwa.runtime.request import Reader, Request

NewRequest = Callable[[Reader], Request]


class Stream(Iterator[Event]):
    """The events of one answer; the last is `Finished`. Whoever leaves before should close it; forgetting it does, too.

    Raises `Busy`, or what `new_request` raises, at once.
    """

    def __init__(self, loop: Loop, new_request: NewRequest) -> None:
        self._arrived: queue.SimpleQueue[list[Event] | BaseException | None] = queue.SimpleQueue()
        self._events: deque[Event] = deque()
        self._is_over = True
        self._loop = loop
        self._reader = _ThreadReader(self._arrived)
        self._request = new_request(self._reader)
        loop.submit(self._request)
        self._is_over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while not self._is_over:
            if self._events:
                event = self._events.popleft()
                self._is_over = isinstance(event, Finished)
                return event
            self._wait()
        raise StopIteration

    def _wait(self) -> None:
        try:
            item = self._arrived.get()
        except BaseException:  # an interrupt from the keyboard
            self.close()
            raise
        if item is None or self._is_over:
            return
        if isinstance(item, BaseException):
            self._is_over = True
            raise item
        self._events.extend(item)

    @property
    def token_ids(self) -> list[int]:
        """The tokens that were sampled so far, the one that ended the answer included."""
        return self._request.token_ids[len(self._request.prompt.token_ids) :]

    def cancel(self) -> None:
        """End the answer within a step, from any thread or signal handler.

        Its reader still gets the text so far, and `Finished` with the reason "cancelled".
        """
        self._loop.cancel(self._request)

    def close(self) -> None:
        """End the answer within a step; its reader gets nothing more. Waits for nothing."""
        self._is_over = True
        self._loop.cancel(self._request)
        self._arrived.put(None)

    def forward(self, reader: Reader) -> None:
        """Let `reader` have all events, what has come already included, and nobody who iterates.

        It is called in the engine's thread, which saves another the work of handing events on.
        """
        self._reader.forward(reader)

    def __del__(self) -> None:
        if not self._is_over:
            self._loop.cancel(self._request)


class AsyncStream(AsyncIterator[Event]):
    """As `Stream`, in an event loop, which never waits for it. The work begins as the first event is asked for.

    Cancelling the task that reads ends the answer within a step, as closing does.
    """

    def __init__(self, loop: Loop, new_request: NewRequest) -> None:
        self._loop = loop
        self._new_request = new_request
        self._reader: _TaskReader | None = None
        self._events: deque[Event] = deque()
        self._is_over = False

    async def __anext__(self) -> Event:
        while not self._is_over:
            if self._events:
                event = self._events.popleft()
                self._is_over = isinstance(event, Finished)
                return event
            await self._wait()
        raise StopAsyncIteration

    async def _wait(self) -> None:
        if self._reader is None:
            self._reader = _TaskReader(self._loop)
            # Rendering a long conversation and making tokens of it takes time, too.
            threading.Thread(target=self._reader.begin, args=[self._new_request], name="kaiwa-prompt").start()
        try:
            item = await self._reader.next_item()
        except BaseException:
            self.close()
            raise
        if isinstance(item, BaseException):
            self._is_over = True
            raise item
        self._events.extend(item)

    def cancel(self) -> None:
        """End the answer within a step; its reader still gets the text so far, and `Finished` as "cancelled"."""
        if self._reader is None:
            self._is_over = True
        else:
            self._reader.leave()

    def close(self) -> None:
        """End the answer within a step; its reader gets nothing more. Waits for nothing."""
        self.cancel()
        self._is_over = True

    async def aclose(self) -> None:
        """As `close`, for `contextlib.aclosing`."""
        self.close()

    def __del__(self) -> None:
        if not self._is_over and self._reader is not None:
            self._reader.leave()


class _ThreadReader:
    """Hands events to a stream without knowing it, so that a stream that is forgotten can be collected."""

    def __init__(self, arrived: queue.SimpleQueue[list[Event] | BaseException | None]) -> None:
        self._arrived = arrived
        self._other: Reader | None = None
        self._mutex = threading.Lock()

    def forward(self, other: Reader) -> None:
        """Hand all events to `other` from now on, and first those that nobody has taken."""
        with self._mutex:
            self._other = other
            while not self._arrived.empty():
                self._hand_over(self._arrived.get())
            other.wake()

    def deliver(self, events: list[Event]) -> None:
        with self._mutex:
            self._hand_over(events)

    def wake(self) -> None:
        if self._other is not None:  # a thread is woken by what it is given
            self._other.wake()

    def fail(self, error: BaseException) -> None:
        with self._mutex:
            self._hand_over(error)

    def _hand_over(self, item: list[Event] | BaseException | None) -> None:
        if self._other is None:
            self._arrived.put(item)
        elif isinstance(item, BaseException):
            self._other.fail(item)
        elif item is not None:
            self._other.deliver(item)


class _TaskReader:
    """Hands events to a task. It is woken once for all that arrives until it looks."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._request: Request | None = None
        self._has_left = False
        self._items: deque[list[Event] | BaseException] = deque()
        self._bell = TaskBell()

    def begin(self, new_request: NewRequest) -> None:
        """Ask, in a thread of its own."""
        try:
            self._request = new_request(self)
            if not self._has_left:
                self._loop.submit(self._request)
            if self._has_left:
                self._loop.cancel(self._request)
        except BaseException as error:  # noqa: BLE001  (the task raises it)
            self.fail(error)

    def leave(self) -> None:
        """Nobody reads on."""
        self._has_left = True
        if self._request is not None:
            self._loop.cancel(self._request)

    def deliver(self, events: list[Event]) -> None:
        self._items.append(events)

    def wake(self) -> None:
        if self._bell.is_heard:
            self._bell.ring()
        else:  # the event loop was closed with the answer unread
            self.leave()

    def fail(self, error: BaseException) -> None:
        self._items.append(error)
        self.wake()

    async def next_item(self) -> list[Event] | BaseException:
        """What has arrived, or arrives next."""
        while not self._items:
            await self._bell.wait()
        return self._items.popleft()


def collect(events: Iterable[Event]) -> Reply:
    """The whole answer."""
    *pieces, last = events
    assert isinstance(last, Finished)
    return Reply(
        "".join(piece.text for piece in pieces),
        last.finish_reason,
        last.usage,
        last.timings,
        reasoning="".join(piece.reasoning for piece in pieces if isinstance(piece, ReasoningDelta)),
        tool_calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
    )
