"""An answer's events as they pass by on their way to the client, and what they tell the metrics."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kaiwa.chat.model import Events
from kaiwa.events import Event, Finished, PromptProgress, Queued
from kaiwa.server.metrics import Metrics

SAME_MOMENT_S = 0.001
"""Pieces that come closer after each other than this have come together, as the runtime hands them out."""


class Waiting:
    """How many answers wait for their turn."""

    def __init__(self) -> None:
        self.number = 0


class _Pieces:
    """When the pieces of one answer came. Those that came together took the time since those before them."""

    def __init__(self, model: str, asked_at: float, metrics: Metrics) -> None:
        self._model = model
        self._metrics = metrics
        self._asked_at = asked_at
        self._before_at = 0.0
        self._came_at = 0.0
        self._number = 0

    def add(self) -> None:
        """One more has come."""
        now = time.perf_counter()
        if not self._came_at:
            self._metrics.first_token.observe(now - self._asked_at, self._model)
            self._before_at = self._came_at = now
        elif self._number and now - self._came_at < SAME_MOMENT_S:
            self._number += 1
        else:
            self.end()
            self._before_at, self._came_at, self._number = self._came_at, now, 1

    def end(self) -> None:
        """Count those that came last."""
        if self._number:
            took_s = self._came_at - self._before_at
            self._metrics.between_tokens.observe(took_s / self._number, self._model, times=self._number)


async def measured(
    events: Events, model: str, asked_at: float, metrics: Metrics, waiting: Waiting
) -> AsyncGenerator[Event]:
    """The same events. `asked_at` is the `time.perf_counter` of the request."""
    pieces = _Pieces(model, asked_at, metrics)
    is_waiting = False
    reason = "broken_off"
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Queued):
                    waiting.number += not is_waiting
                    is_waiting = True
                elif isinstance(event, Finished):
                    reason = event.finish_reason
                    metrics.prompt_tokens.add(event.usage.prompt_tokens, model)
                    metrics.cached_tokens.add(event.usage.cached_tokens, model)
                    metrics.generated_tokens.add(event.usage.generated_tokens, model)
                elif not isinstance(event, PromptProgress):
                    pieces.add()
                if is_waiting and not isinstance(event, Queued):
                    waiting.number -= 1
                    is_waiting = False
                yield event
    finally:
        pieces.end()
        waiting.number -= is_waiting
        metrics.answers.add(1, model, reason)
