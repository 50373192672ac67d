"""Events on their way to readers: held for a moment where more come soon, so that nobody is woken for every token.

Waking a reader takes processors from the engine, which a small model feels. A person sees no difference between single
tokens and a few of them fifty times a second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from kaiwa.events import Event
from kaiwa.runtime.request import Reader
from kaiwa.runtime.scheduler import UNNOTICED_S


class Outbox:
    """What a batcher has for its readers. It is asked before each step, and holds nothing beyond the next one."""

    def __init__(self) -> None:
        self._held: dict[Reader, list[Event]] = {}
        self._held_since = 0.0
        """When the first of them came, in seconds of `time.perf_counter`."""
        self._is_urgent = False

    def put(self, reader: Reader, events: Sequence[Event], *, is_urgent: bool) -> None:
        """Events for a reader. What `is_urgent` takes everything along the next time that somebody asks."""
        if not self._held:
            self._held_since = time.perf_counter()
        self._held.setdefault(reader, []).extend(events)
        self._is_urgent = self._is_urgent or is_urgent

    def fail(self, reader: Reader, error: BaseException) -> None:
        """An error for a reader, after all that was held for it."""
        if events := self._held.pop(reader, None):
            reader.deliver(events)
        reader.fail(error)

    def before_step(self, step_s: float | None) -> None:
        """Hand out what would be held too long by a step of `step_s` seconds; None is one that nobody knows."""
        if self._held and (step_s is None or time.perf_counter() + step_s - self._held_since > UNNOTICED_S):
            self.hand_out()

    def after_step(self) -> None:
        """Hand out all where something is urgent."""
        if self._is_urgent:
            self.hand_out()

    def hand_out(self) -> None:
        """Let everybody have what is theirs."""
        held, self._held, self._is_urgent = self._held, {}, False
        for reader, events in held.items():
            reader.deliver(events)
        for reader in held:
            reader.wake()
