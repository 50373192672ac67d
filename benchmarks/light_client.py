"""A client of streamed completions that costs next to nothing, so that what is measured is the server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

PIECE_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Answer:
    """One streamed answer: how many tokens, and when the first event and the last one came, in seconds."""

    status: int
    num_tokens: int
    first_s: float
    total_s: float
    text: str


@asynccontextmanager
async def asked(
    address: tuple[str, int], path: str, body: dict[str, Any]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that has just asked. It is closed at the end, whatever came of it."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        raw = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode() + raw)
        await writer.drain()
        yield reader, writer
    finally:
        writer.close()


async def stream(address: tuple[str, int], path: str, body: dict[str, Any]) -> Answer:
    """Ask for a stream with its usage, and read it to its end."""
    started = time.perf_counter()
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    pieces = []
    first_s = 0.0
    async with asked(address, path, body) as (reader, _):
        while piece := await reader.read(PIECE_BYTES):
            pieces.append(piece)
            first_s = first_s or (time.perf_counter() - started if b"data:" in piece else 0.0)
    text = b"".join(pieces).decode()
    return Answer(
        int(text.split(" ", 2)[1]) if text else 0, _num_tokens(text), first_s, time.perf_counter() - started, text
    )


def _num_tokens(text: str) -> int:
    _, found, rest = text.rpartition('"completion_tokens":')
    return int(rest.split(",")[0].split("}")[0]) if found else 0
