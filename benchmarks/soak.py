"""A soak of loading and of processes: people come, ask, leave in the middle, and now and then a process is killed.

    python benchmarks/soak.py                          # smollm2:135m, 5 minutes, 200 people
    python benchmarks/soak.py --seconds 30 --people 20

Nothing may be lost: every request ends with an answer, its own cancellation, or the crash that somebody caused. Nothing
may be left: no process, no descriptor, no thread, no task, and no more memory from one half of the run to the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kaiwa.chat.model import ChatModel
from kaiwa.errors import EngineCrashed
from kaiwa.events import Finished
from kaiwa.runtime.pool.admission import Load
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.pool.shelf import State
from kaiwa.runtime.process.model_process import ModelProcess, in_child

QUESTIONS = ("Hello", "Tell me a long story.", "Why is the sky blue?", "x" * 2000)
MAX_PAUSE_S = 0.2
LEAVES_AFTER = 12
"""Events, at most, that a person reads who leaves in the middle."""


@dataclass(slots=True)
class Tally:
    """What became of all requests, and what was held at two moments."""

    num_asked: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    num_kills: int = 0
    middle_bytes: int = 0
    end_bytes: int = 0

    @property
    def num_lost(self) -> int:
        """Requests that did not end in a way that is known."""
        return self.num_asked - self.ends.total()

    def to_dict(self) -> dict[str, object]:
        """Everything by name, for JSON."""
        return {
            "asked": self.num_asked, **self.ends, "lost": self.num_lost, "kills": self.num_kills,
            "middle_bytes": self.middle_bytes, "end_bytes": self.end_bytes,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Held:
    """What a program holds of its system."""

    descriptors: int
    threads: int
    children: int


async def soak(
    loads: Sequence[Load], *, people: int, seconds: float, kill_every_s: float, seed: int = 0, max_models: int = 1
) -> Tally:
    """Let people use these models for so long."""
    tally, chance = Tally(), random.Random(seed)
    async with ModelPool(max_models=max_models) as pool:
        names = [f"model {number}" for number in range(len(loads))]
        for name, load in zip(names, loads, strict=True):
            pool.add(name, load)
        until = time.monotonic() + seconds
        crowd = [
            asyncio.create_task(_person(pool, names, until, random.Random(chance.random()), tally))
            for _ in range(people)
        ]
        killer = asyncio.create_task(_killer(pool, names, kill_every_s, tally))
        await asyncio.sleep(seconds / 2)
        tally.middle_bytes = own_bytes()
        await asyncio.gather(*crowd)
        killer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await killer
        tally.end_bytes = own_bytes()
        for status in pool.models():
            assert status.num_users == 0, f"{status.name} is still in use"
    return tally


async def _person(pool: ModelPool, names: Sequence[str], until: float, chance: random.Random, tally: Tally) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(chance.random() * MAX_PAUSE_S)
        tally.num_asked += 1
        request = asyncio.create_task(_ask(pool, chance.choice(names), chance))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * MAX_PAUSE_S)
            request.cancel()
        try:
            tally.ends[await request] += 1
        except asyncio.CancelledError:
            tally.ends["cancelled"] += 1
        except EngineCrashed:
            tally.ends["crashed"] += 1


async def _ask(pool: ModelPool, name: str, chance: random.Random) -> str:
    async with pool.use(name) as model:
        if chance.random() < 0.2:
            return await asyncio.to_thread(_ask_in_a_thread, model, chance)
        num_events = chance.randrange(LEAVES_AFTER) if chance.random() < 0.4 else None
        async with contextlib.aclosing(model.astream(chance.choice(QUESTIONS), max_new_tokens=40)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return "answered"
                if num_events == 0:
                    return "left"
                num_events = None if num_events is None else num_events - 1
    raise AssertionError("an answer ended without its last event")


def _ask_in_a_thread(model: ChatModel, chance: random.Random) -> str:
    *_, last = model.stream(chance.choice(QUESTIONS), max_new_tokens=10)
    assert isinstance(last, Finished)
    return "answered"


async def _killer(pool: ModelPool, names: Sequence[str], every_s: float, tally: Tally) -> None:
    """Kill the process of whichever model is there."""
    while True:
        await asyncio.sleep(every_s)
        ready = [name for name in names if pool.status(name).state is State.READY]
        for name in ready[:1]:
            async with pool.use(name) as model:
                if isinstance(model, ModelProcess):
                    with contextlib.suppress(ProcessLookupError):  # it has not started again since the last time
                        os.kill(model.pid, signal.SIGKILL)
                        tally.num_kills += 1


def held() -> Held:
    """What this program holds now."""
    gc.collect()
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return Held(len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(children))


def own_bytes() -> int:
    """The memory of this process that is no file's."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024


def run(loads: Sequence[Load], *, people: int, seconds: float, kill_every_s: float) -> tuple[Tally, Held, Held]:
    """A whole soak, with what was held before it and after."""
    before = held()
    tally = asyncio.run(soak(loads, people=people, seconds=seconds, kill_every_s=kill_every_s))
    return tally, before, held()


def main() -> int:
    """Print what happened; 1 where something was lost or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2:135m")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--kill-every", type=float, default=15, metavar="SECONDS")
    parser.add_argument("--models", type=int, default=2, help="how many, of which one has a place")
    arguments = parser.parse_args()
    tally, before, after = run(
        [in_child(arguments.model, context_length=1024)] * arguments.models,
        people=arguments.people,
        seconds=arguments.seconds,
        kill_every_s=arguments.kill_every,
    )
    print(json.dumps({**tally.to_dict(), "before": asdict(before), "after": asdict(after)}, indent=2))
    return int(tally.num_lost != 0 or before != after)


if __name__ == "__main__":
    sys.exit(main())
