"""From the moment in which all clients vanish to the one in which the engine rests, in milliseconds.

    python benchmarks/leaving.py

Eight streams break in the middle of their answers, and a client in the middle of its prompt of 4,000 tokens. The engine
rests when its process takes no processor time any more; Linux says how much it took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

import light_client
import server
from light_client import PIECE_BYTES

Leave = Callable[[server.Address, int], Coroutine[Any, Any, None]]

NUM_STREAMS = 8
MOST_S = 0.2
QUIET_S = 0.1
"""A process that took no time for so long rests."""
POLL_S = 0.002
AT_REST_NS = 500_000
"""What a process may take in `QUIET_S` and rest: it still looks whether there is work."""


async def streams(address: server.Address, run: int) -> None:
    """Break eight streams at once."""
    body = {"model": server.MODEL, "max_tokens": 4000, "stream": True, "logit_bias": {str(server.END_ID): -100}}
    all_read = asyncio.Barrier(NUM_STREAMS)

    async def read(number: int) -> None:
        asked = {**body, "prompt": f"Story {run}.{number}. Once upon a time,"}
        async with light_client.asked(address, "/v1/completions", asked) as (reader, _):
            for _ in range(4):
                await reader.read(PIECE_BYTES)
            await all_read.wait()

    await asyncio.gather(*(read(number) for number in range(NUM_STREAMS)))


async def prompt(address: server.Address, run: int) -> None:
    """Break a request while its prompt is read."""
    words = f"Story {run}. " + "Once upon a time, in a village by the sea, there lived a man. " * 250
    async with light_client.asked(address, "/v1/completions", {"model": server.MODEL, "prompt": words}):
        await asyncio.sleep(0.5)


def taken_s(leave: Leave, address: server.Address, run: int) -> float:
    """How long the engine goes on after somebody leaves. The event loop has ended then, and closed all connections."""
    asyncio.run(leave(address, run))
    return _rest_s()


def _rest_s() -> float:
    """When the engine's process last took time, in seconds from now."""
    [served] = _children(os.getpid())
    [engine] = _children(served)
    started = last = time.perf_counter()
    taken_ns = _taken_ns(engine)
    while time.perf_counter() - last < QUIET_S:
        time.sleep(POLL_S)
        if (now_ns := _taken_ns(engine)) - taken_ns > AT_REST_NS:
            taken_ns, last = now_ns, time.perf_counter()
    return last - started


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _taken_ns(pid: int) -> int:
    return time.clock_gettime_ns((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) makes it


def main() -> int:
    """Measure and print; 1 where it takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="medians of so many runs (default: 10)")
    arguments = parser.parse_args()
    is_slow = False
    with server.kaiwa_serve() as address:
        asyncio.run(server.speed(address, 1, 8, -1))
        for name, leave in (("eight streams", streams), ("in the middle of a prompt", prompt)):
            times_s = sorted(taken_s(leave, address, run) for run in range(arguments.runs))
            is_slow = is_slow or times_s[-1] > MOST_S
            middle_ms, most_ms = median(times_s) * 1000, times_s[-1] * 1000
            print(f"{name:26} {middle_ms:4.0f} ms, at most {most_ms:.0f} (to reach: {MOST_S * 1000:.0f})")
    return int(is_slow)


if __name__ == "__main__":
    sys.exit(main())
