"""One call of a model in another process: what was asked, and what has come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Self

from kaiwa.events import Event
from kaiwa.runtime.bell import Bell, ThreadBell
from kaiwa.runtime.process.wire import WINDOW, Ask, End, Failed, Part, Reply, Stop, Taken, Value


class Call:
    """The receiving end of one `Ask`, which waits for nothing.

    `bell` rings when there is something to look at; `send` takes what goes back.
    """

    def __init__(self, ask: Ask, bell: Bell, send: Callable[[object], None]) -> None:
        self.ask = ask
        self.is_over = False
        """Whether nothing more comes."""
        self._bell = bell
        self._send = send
        self._arrived: deque[Reply] = deque()
        self._num_taken = 0

    def put(self, reply: Reply) -> None:
        """Something has come; called from the thread that receives."""
        self._arrived.append(reply)
        self._bell.ring()

    def end(self) -> None:
        """Nobody wants more of it: the process may stop, and whoever waits for this call gets nothing more."""
        if not self.is_over:
            self.is_over = True
            self._send(Stop(self.ask.number, is_quiet=True))
            self._bell.ring()

    def cancel(self) -> None:
        """Let the answer end with the text so far and `Finished`."""
        self._send(Stop(self.ask.number, is_quiet=False))

    def is_begun(self) -> bool:
        """Whether the request was accepted. Raises the error if it was not."""
        if self._arrived and isinstance(self._arrived[0], Failed):
            self._look_at(self._arrived.popleft())
        return bool(self._arrived)

    def events(self) -> list[Event]:
        """What has arrived of the answer. Raises the error that ended it, once all before it has been taken."""
        events: list[Event] = []
        while self._arrived and not self.is_over:
            if events and isinstance(self._arrived[0], Failed):
                break
            reply = self._arrived.popleft()
            self._look_at(reply)
            if isinstance(reply, Part):
                events.extend(reply.events)
        self._count(len(events))
        return events

    def values(self) -> list[Any]:
        """What the method returned, in a list that is empty as long as it did not. Raises its error."""
        while self._arrived and not self.is_over:
            reply = self._arrived.popleft()
            self._look_at(reply)
            if isinstance(reply, Value):
                return [reply.value]
        return []

    def _look_at(self, reply: Reply) -> None:
        self.is_over = self.is_over or isinstance(reply, End | Value | Failed)
        if isinstance(reply, Failed):
            raise reply.error

    def _count(self, num_events: int) -> None:
        """Tell what was read, now and then, so that the process may send more."""
        self._num_taken += num_events
        if self._num_taken >= WINDOW // 2:
            self._send(Taken(self.ask.number, self._num_taken))
            self._num_taken = 0


class ProcessStream(Iterator[Event]):
    """The events of one answer, for a thread; the last is `Finished`."""

    def __init__(self, call: Call, bell: ThreadBell) -> None:
        self._call = call
        self._bell = bell
        self._events: deque[Event] = deque()

    def begin(self) -> None:
        """Wait until the request is accepted. Raises the error if it is not."""
        try:
            while not self._call.is_begun():
                self._bell.wait()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        try:
            while not self._events and not self._call.is_over:
                self._events.extend(self._call.events())
                if not self._events and not self._call.is_over:
                    self._bell.wait()
        except BaseException:
            self.close()
            raise
        if not self._events:
            raise StopIteration
        return self._events.popleft()

    def cancel(self) -> None:
        """End the answer within a step, from any thread or signal handler.

        Its reader still gets the text so far, and `Finished` with the reason "cancelled".
        """
        self._call.cancel()

    def close(self) -> None:
        """End the answer within a step; its reader gets nothing more."""
        self._events.clear()
        self._call.end()

    def __del__(self) -> None:
        self._call.end()
