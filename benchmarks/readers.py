"""Kaiwa as its readers see it: answers that come through `LLM`, timed as they arrive, in a process of its own."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kaiwa import __version__
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.measuring.contenders import Loaded, Make, Run, Task

NEW_TOKENS = 40
"""What a second turn adds to the first and its answer."""


def llm(num_streams: int = 1) -> Make:
    """So many answers at once, each read in a thread of its own. Their speeds are added up."""
    return partial(_load, num_streams)


def second_turn() -> Make:
    """A chat of which a task is the first turn. Its prompt speed is second turns per second, to their first token."""
    return _load_second_turn


def _load(num_streams: int, path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    started = time.perf_counter()
    model = LLM(path, threads=threads, context_length=context_length, speculation=False)
    load_s = time.perf_counter() - started
    readers = ThreadPoolExecutor(num_streams)

    def read(task: Task) -> tuple[float, float]:
        begun = time.perf_counter()
        stream = model.stream_text(task.token_ids, end_ids=(), do_sample=False, max_new_tokens=task.num_new)
        first = last = 0.0
        for _ in stream:
            last = time.perf_counter()
            first = first or last
        return len(task.token_ids) / (first - begun), (task.num_new - 1) / max(last - first, 1e-9)

    def run(task: Task) -> tuple[float, float]:
        speeds = list(readers.map(read, [task] * num_streams))
        return speeds[0][0], sum(decode for _, decode in speeds)

    return Loaded(f"kaiwa {__version__}, LLM", load_s), run


def _load_second_turn(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    started = time.perf_counter()
    model = LLM(path, threads=threads, context_length=context_length, speculation=False)
    load_s = time.perf_counter() - started

    def run(task: Task) -> tuple[float, float]:
        first = model.stream_text(task.token_ids, end_ids=(), do_sample=False, max_new_tokens=task.num_new)
        answer = model.tokenize("".join(event.text for event in first))[: task.num_new]
        new = [(token_id * 7) % 30_000 + 3 for token_id in task.token_ids[:NEW_TOKENS]]
        begun = time.perf_counter()
        second = model.stream_text([*task.token_ids, *answer, *new], end_ids=(), do_sample=False, max_new_tokens=2)
        next(second)
        first_s = time.perf_counter() - begun
        *_, last = second
        assert last.usage.cached_tokens >= len(task.token_ids) - 1
        return 1 / first_s, 0.0

    return Loaded(f"kaiwa {__version__}, LLM", load_s), run
