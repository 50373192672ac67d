"""Whose turn it is: requests of many threads, one at a time, first come first served."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import Literal


class Turns:
    """The queue in front of an engine. A request takes a `Ticket`, waits for its turn, and leaves."""

    def __init__(self) -> None:
        self._queue: deque[Ticket] = deque()
        self._changes: deque[tuple[Literal["join", "leave"], Ticket]] = deque()
        self._mutex = threading.Lock()
        self._is_closed = False
        self.current: Ticket | None = None
        """Who has the turn."""

    def close(self) -> None:
        """Nobody waits from now on."""
        self._is_closed = True
        for ticket in tuple(self._queue):
            ticket.open()

    def change(self, kind: Literal["join", "leave"], ticket: Ticket) -> None:
        """Let a ticket join the queue, or leave it wherever it stands.

        The garbage collector may end a forgotten request anywhere, even inside this function. So nothing here waits for
        the lock: whoever has it looks again after letting go, and makes the changes that others left.
        """
        self._changes.append((kind, ticket))
        while self._changes and self._mutex.acquire(blocking=False):
            try:
                self._apply_changes()
            finally:
                self._mutex.release()

    def _apply_changes(self) -> None:
        while self._changes:
            # Taken off last: where an interrupt from the keyboard comes between, the change is made again.
            kind, ticket = self._changes[0]
            if kind == "join" and ticket not in self._queue:
                self._queue.append(ticket)
            elif kind == "leave" and ticket in self._queue:
                self._queue.remove(ticket)
            self.current = self._queue[0] if self._queue else None
            if self.current is not None:
                self.current.open()
            if self._is_closed:
                ticket.open()
            self._changes.popleft()


class Ticket:
    """One request's place in the queue."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._gate = threading.Lock()
        self._gate.acquire()
        self._reader: int | None = None
        self.is_withdrawn = False
        """Whether the request shall stop. It looks between two steps."""

    def wait(self) -> None:
        """Wait for the turn; an interrupt from the keyboard ends the wait.

        A thread that asks for a second answer while it reads a first one goes ahead, as the first waits for it.
        A withdrawn ticket waits no longer; look at `is_withdrawn` after.
        """
        first = self._turns.current
        if first is not None and first._reader == threading.get_ident():
            return
        try:
            self._turns.change("join", self)
            self._gate.acquire()
        except BaseException:
            self.leave()
            raise

    def pause(self) -> None:
        """The request hands over an event, and the thread that reads it does something else."""
        self._reader = threading.get_ident()

    def resume(self) -> None:
        """A thread came back for the next event."""
        self._reader = None

    def withdraw(self) -> None:
        """Stop the request, from any thread."""
        self.is_withdrawn = True
        self.open()

    def open(self) -> None:
        """End the wait."""
        with contextlib.suppress(RuntimeError):  # it is open
            self._gate.release()

    def leave(self) -> None:
        """Give the turn to the next. Never blocks."""
        self._turns.change("leave", self)
