"""The benchmark of the runtime: readers that count right, and a table that hangs together."""

from __future__ import annotations

from pathlib import Path

import readers
import runtime as benchmark
from kaiwa.runtime.measuring.contenders import Contender, Task


def test_readers_are_served(model_path: Path) -> None:
    task = Task(list(range(100, 140)), 8)
    for make in (readers.llm(2), readers.second_turn()):
        with Contender(make, model_path, threads=2, context_length=256) as contender:
            speeds = contender.run(task)
            assert speeds.prompt_tokens_per_s > 0


def test_the_table_says_what_to_reach() -> None:
    row = benchmark.Row("it, beside another", readers.llm(), readers.llm(), 16, 8, "decode", 2.2)
    assert benchmark.report([benchmark.Result(row, ours=50.0, other=20.0)]).splitlines()[1] == (
        "it, beside another                          20.00    50.00    2.50      2.20"
    )
