"""An answer's events as they pass by on their way to the client, and what they tell the metrics."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kaiwa.chat.model import Events
from kaiwa.events import Event, Finished, PromptProgress, Queued
from kaiwa.server.metrics import Metrics


class Waiting:
    """How many answers wait for their turn."""

    def __init__(self) -> None:
        self.number = 0


async def measured(
    events: Events, model: str, asked_at: float, metrics: Metrics, waiting: Waiting
) -> AsyncGenerator[Event]:
    """The same events. `asked_at` is the `time.perf_counter` of the request."""
    last_at = 0.0
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
                    now = time.perf_counter()
                    if last_at:
                        metrics.between_tokens.observe(now - last_at, model)
                    else:
                        metrics.first_token.observe(now - asked_at, model)
                    last_at = now
                if is_waiting and not isinstance(event, Queued):
                    waiting.number -= 1
                    is_waiting = False
                yield event
    finally:
        waiting.number -= is_waiting
        metrics.answers.add(1, model, reason)
