"""A real server on a port of its own, in a thread, with a model that needs no weights."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.pool.admission import Load, ready
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.server.app import create_app
from kaiwa.server.run import Running
from kaiwa.server.settings import ServerSettings
from small_model import model, until

MODEL = "small"
KEY = "a-key-for-tests"


@dataclass(frozen=True, slots=True)
class Live:
    """A server that runs, and clients for it."""

    url: str
    engine: ScriptedEngine
    running: Running

    def openai(self, key: str = KEY) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)

    def async_openai(self, key: str = KEY) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)

    def anthropic(self, key: str = KEY) -> Anthropic:
        return Anthropic(base_url=self.url, api_key=key, max_retries=0)

    def async_anthropic(self, key: str = KEY) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0)

    def http(self, **options: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=30, **options)

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """One request, without a client that knows better."""
        with self.http() as client:
            return client.post(
                path, json=body, headers={name.replace("_", "-"): word for name, word in headers.items()}
            )

    def ask(self, **fields: Any) -> httpx2.Response:
        """A chat completion of one message."""
        return self.post(
            "/v1/chat/completions", {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], **fields}
        )


@contextmanager
def serve(
    engine: ScriptedEngine, *, llm: LLM | None = None, load: Load | None = None, **options: Any
) -> Iterator[Live]:
    """Run a server of one model until the end of the block; then nothing may be left of it.

    The model is the small one around the engine, or `llm`, or what `load` gives.
    """
    with ModelPool() as pool:
        pool.add(MODEL, load or ready(lambda: llm or model(engine)))
        settings = ServerSettings(port=0, **{"drain_s": 1, **options})
        app = create_app(pool, settings)
        running = Running(app, settings)
        thread = threading.Thread(target=lambda: asyncio.run(running.serve()), name="server")
        thread.start()
        try:
            until(lambda: running.started)
            yield Live(running.url, engine, running)
        finally:
            running.should_exit = True
            thread.join()
