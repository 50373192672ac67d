"""A soak of `kaiwa serve`: clients that ask, read, leave in the middle, vanish and come back, for as long as one likes.

    python benchmarks/server_soak.py                               # smollm2:135m, 5 minutes, 200 clients
    python benchmarks/server_soak.py --seconds 30 --clients 20

Nothing may be lost: whoever stays gets a whole answer, or is told to come back later. Nothing may be left: in the end
no request is in flight, no engine is at work, and the server holds no more memory than in the middle of the run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import light_client
from light_client import PIECE_BYTES

PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions")
QUESTIONS = ("Hello", "Tell me a long story.", "Why is the sky blue?", "x" * 2000)
MAX_PAUSE_S = 0.2
PATIENCE_S = 10.0
MAX_GROWTH_BYTES = 32 * 2**20

Address = tuple[str, int]


@dataclass(slots=True)
class Tally:
    """What became of all clients, and what the server held at two moments."""

    num_asked: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    """What came instead of an answer."""
    middle_bytes: int = 0
    end_bytes: int = 0
    in_flight: int = -1


async def soak(address: Address, model: str, *, num_clients: int, seconds: float, seed: int = 0) -> Tally:
    """Let clients use the server for so long."""
    tally, chance = Tally(), random.Random(seed)
    until = time.monotonic() + seconds
    crowd = [
        asyncio.create_task(_client(address, model, until, random.Random(chance.random()), tally))
        for _ in range(num_clients)
    ]
    await asyncio.sleep(seconds / 2)
    tally.middle_bytes = int((await metrics(address))["process_resident_memory_bytes"])
    await asyncio.gather(*crowd)
    deadline = time.monotonic() + PATIENCE_S
    while tally.in_flight != 0 and time.monotonic() < deadline:
        values = await metrics(address)
        tally.in_flight = int(values["kaiwa_requests_in_flight"]) + int(values["kaiwa_requests_waiting"])
        tally.end_bytes = int(values["process_resident_memory_bytes"])
        await asyncio.sleep(0.05)
    return tally


async def metrics(address: Address) -> dict[str, float]:
    """What the server says of itself."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    lines = [line for line in text.splitlines() if line.startswith(("kaiwa_", "process_"))]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def _client(address: Address, model: str, until: float, chance: random.Random, tally: Tally) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(chance.random() * MAX_PAUSE_S)
        tally.num_asked += 1
        path = chance.choice(PATHS)
        tally.ends[await chance.choice(_WAYS)(address, path, body(path, model, chance), chance, tally)] += 1


def body(path: str, model: str, chance: random.Random) -> dict[str, Any]:
    """A request in the words of the API behind that path."""
    question, length = chance.choice(QUESTIONS), chance.randrange(1, 40)
    if path == "/v1/completions":
        return {"model": model, "prompt": question, "max_tokens": length}
    if path == "/v1/responses":
        return {"model": model, "input": question, "max_output_tokens": length}
    return {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": length}


async def _read_all(address: Address, path: str, body: dict[str, Any]) -> str:
    async with light_client.asked(address, path, body) as (reader, _):
        return (await reader.read()).decode()


def _end(text: str, last: tuple[str, ...], tally: Tally) -> str:
    if text.startswith("HTTP/1.1 429"):
        return "refused"
    if text.startswith("HTTP/1.1 200") and any(word in text for word in last):
        return "answered"
    tally.lost.append(text[:1000])
    return "lost"


async def _stay(address: Address, path: str, body: dict[str, Any], chance: random.Random, tally: Tally) -> str:
    ends = ('"finish_reason":"', '"stop_reason":"', '"status":"completed"', '"status":"incomplete"')
    return _end(await _read_all(address, path, body), ends, tally)


async def _stream(address: Address, path: str, body: dict[str, Any], chance: random.Random, tally: Tally) -> str:
    ends = ("data: [DONE]", "event: message_stop", "event: response.completed", "event: response.incomplete")
    return _end(await _read_all(address, path, {**body, "stream": True}), ends, tally)


async def _leave(address: Address, path: str, body: dict[str, Any], chance: random.Random, tally: Tally) -> str:
    async with light_client.asked(address, path, {**body, "stream": True}) as (reader, _):
        for _ in range(chance.randrange(5)):
            await reader.read(PIECE_BYTES)
    return "left"


async def _vanish(address: Address, path: str, body: dict[str, Any], chance: random.Random, tally: Tally) -> str:
    async with light_client.asked(address, path, body):
        await asyncio.sleep(chance.random() * MAX_PAUSE_S)
    return "vanished"


async def _err(address: Address, path: str, body: dict[str, Any], chance: random.Random, tally: Tally) -> str:
    text = await _read_all(address, path, {**body, "temprature": 1})
    if text.startswith("HTTP/1.1 400"):
        return "told"
    tally.lost.append(text[:1000])
    return "lost"


_WAYS: tuple[Callable[[Address, str, dict[str, Any], random.Random, Tally], Awaitable[str]], ...] = (
    _stay,
    _stream,
    _stream,
    _leave,
    _vanish,
    _err,
)


def main() -> int:
    """Print what happened; 1 where something was lost or left."""
    import server

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=200)
    arguments = parser.parse_args()
    with server.kaiwa_serve("--max-requests", "150") as address:
        tally = asyncio.run(soak(address, server.MODEL, num_clients=arguments.clients, seconds=arguments.seconds))
    growth_bytes = tally.end_bytes - tally.middle_bytes
    print(json.dumps({**tally.ends, "asked": tally.num_asked, "in flight": tally.in_flight, "growth": growth_bytes}))
    print(*tally.lost[:3], sep="\n", file=sys.stderr)
    return int(bool(tally.lost) or tally.in_flight != 0 or growth_bytes > MAX_GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main())
