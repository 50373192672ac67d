"""What all endpoints share: the models, the gate in front of them, and what is counted."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from kaiwa.runtime.pool.admission import PooledModel
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.server.ask import Ask
from kaiwa.server.gate import Gate
from kaiwa.server.measured import Waiting, measured
from kaiwa.server.merge import Numbered, merge
from kaiwa.server.metrics import Metrics
from kaiwa.server.responses.store import Store
from kaiwa.server.settings import ServerSettings


class Serving:
    """One server's state."""

    def __init__(self, pool: ModelPool, settings: ServerSettings) -> None:
        self.pool = pool
        self.settings = settings
        self.started_s = int(time.time())
        self.gate = Gate(settings.max_requests)
        self.metrics = Metrics()
        self.waiting = Waiting()
        self.responses = Store(settings.max_stored_bytes)

    async def answer(self, ask: Ask, client: str) -> AsyncGenerator[Numbered]:
        """The events of all choices, numbered. Closing it ends the work within a step and gives the place back.

        Raises `ApiError` or `KaiwaError`, where it can before the first event.
        """
        asked_at = time.perf_counter()
        async with self.model(ask.model) as model:
            choices = [
                measured(ask.start(model, choice, client), ask.model, asked_at, self.metrics, self.waiting)
                for choice in range(ask.num_choices)
            ]
            async with aclosing(merge(choices)) as events:
                async for numbered in events:
                    yield numbered

    @asynccontextmanager
    async def model(self, name: str) -> AsyncIterator[PooledModel]:
        """A place in the queue and the model of that name, until the block ends."""
        with self.gate.place():
            async with self.pool.use(name) as model:
                yield model
