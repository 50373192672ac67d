"""Clients that leave: the engine stops within a step, and the place is free for the next."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kaiwa.engines.scripted import ScriptedEngine
from live import MODEL, Live, serve
from small_model import says, until

SLOW = {"delay_s": 0.02, "context_length": 30_000}


def connect(live: Live, **fields: Any) -> socket.socket:
    """A connection that has just asked."""
    host, port = live.url.removeprefix("http://").split(":")
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], **fields}).encode()
    connection = socket.create_connection((host, int(port)), timeout=10)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    connection.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def steps_after(engine: ScriptedEngine, leave: Callable[[], None]) -> int:
    """How many steps the engine takes after somebody leaves."""
    until(lambda: len(engine.steps) > 2)
    leave()
    time.sleep(0.1)  # the news travels through the system's network and an event loop
    before = len(engine.steps)
    time.sleep(0.3)
    return len(engine.steps) - before


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("content", ["short", "x" * 25_000])
def test_a_connection_that_breaks_stops_the_engine(stream: bool, content: str) -> None:
    engine = says("x" * 5000, **SLOW)
    with serve(engine) as live:
        with connect(live, stream=stream, messages=[{"role": "user", "content": content}]) as connection:
            assert steps_after(engine, connection.close) <= 1
        assert live.ask(max_tokens=2).json()["choices"][0]["message"]["content"] == "xx"


def test_a_client_that_closes_its_stream_stops_the_engine() -> None:
    engine = says("x" * 5000, **SLOW)
    with serve(engine) as live, live.openai() as client:
        hello = [{"role": "user", "content": "Hello"}]
        with client.chat.completions.create(model=MODEL, messages=hello, stream=True) as stream:
            next(iter(stream))
            assert steps_after(engine, stream.close) <= 1


def test_a_cancelled_task_stops_the_engine() -> None:
    engine = says("x" * 5000, **SLOW)

    async def main(live: Live) -> None:
        async with live.async_openai() as client:
            hello = [{"role": "user", "content": "Hello"}]
            asking = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=hello))
            assert await asyncio.to_thread(steps_after, engine, lambda: None) > 1
            asking.cancel()
            await asyncio.sleep(0.1)
            before = len(engine.steps)
            await asyncio.sleep(0.3)
            assert len(engine.steps) - before <= 1

    with serve(engine) as live:
        asyncio.run(main(live))


def test_all_choices_stop() -> None:
    engine = says("x" * 5000, **SLOW)
    with serve(engine) as live, connect(live, n=3, stream=True) as connection:
        assert steps_after(engine, connection.close) <= 1


def test_places_are_counted_and_given_back() -> None:
    engine = says("x" * 5000, **SLOW)
    with serve(engine, max_requests=2) as live:
        first, second = connect(live, stream=True), connect(live)
        until(lambda: live.ask().status_code == 429)
        refused = live.ask()
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert "yours would be number 3" in refused.json()["error"]["message"]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        with live.http() as client:
            assert client.get("/health").status_code == 200
        first.close()
        second.close()
        until(lambda: live.ask(max_tokens=1).status_code == 200)


def test_a_silent_connection_is_kept_alive_by_comments() -> None:
    with serve(says("abc", delay_s=0.5), comment_every_s=0.2) as live:
        response = live.ask(stream=True)
    assert response.text.startswith(": still at work\n\n")
    assert response.text.count(": still at work") >= 4
    assert response.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_stops_lets_answers_finish(stream: bool) -> None:
    engine = says("x" * 20, delay_s=0.02)
    responses = []
    with serve(engine, drain_s=10) as live:
        asking = threading.Thread(target=lambda: responses.append(live.ask(stream=stream)))
        asking.start()
        until(lambda: len(engine.steps) > 2)
    asking.join()
    assert responses[0].text.count("x") >= 20
    assert '"finish_reason":"stop"' in responses[0].text


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_cannot_wait_longer_says_so(stream: bool) -> None:
    engine = says("x" * 5000, delay_s=0.02)
    responses = []
    with serve(engine, drain_s=1) as live:
        asking = threading.Thread(target=lambda: responses.append(live.ask(stream=stream)))
        asking.start()
        until(lambda: len(engine.steps) > 2)
    asking.join()
    assert responses[0].status_code == (200 if stream else 503)
    assert '"code":"shutting_down"' in responses[0].text.removesuffix("\n\n").split("\n\n")[-1]
    assert len(engine.steps) < 200
