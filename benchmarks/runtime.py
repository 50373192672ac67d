"""The runtime beside the bare engine and beside llama.cpp: the same file, the same machine, alternating runs, medians.

    python benchmarks/runtime.py            # a minute
    python benchmarks/runtime.py --quick    # seconds, to see that it works

`README.md` says what each row means.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import racers
import readers
from kaiwa.engines.native.threads import choose
from kaiwa.runtime.measuring.contenders import Contender, Make, Speeds, Task
from kaiwa.weights import hub
from racers import prompt

CONTEXT_LENGTH = 4096
VOCAB_SIZE = 40_000


@dataclass(frozen=True, slots=True)
class Row:
    """Two racers with the same tasks, and what the first should reach of the second's speed."""

    name: str
    ours: Make
    other: Make
    num_prompt: int
    num_new: int
    what: str
    least_ratio: float
    context_length: int = CONTEXT_LENGTH


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of one row: tokens per second, or turns per second up to their first token."""

    row: Row
    ours: float
    other: float

    @property
    def ratio(self) -> float:
        """Our speed over the other's."""
        return self.ours / self.other


def rows() -> list[Row]:
    """What is measured."""
    return [
        Row("one stream, beside the bare engine", readers.llm(1), racers.kaiwa(1), 16, 96, "decode", 0.97),
        Row("eight streams, beside llama.cpp", readers.llm(8), racers.llama_cpp(8), 16, 64, "decode", 2.2, 512),
        Row("a second turn, beside llama.cpp's first", readers.second_turn(), racers.llama_cpp(1), 2000, 32, "turn", 5),
    ]


def run(row: Row, path: Path, *, threads: int, runs: int) -> Result:
    """Measure one row, after a run of each that does not count."""
    with ExitStack() as children:
        contenders = [
            children.enter_context(Contender(make, path, threads=threads, context_length=row.context_length))
            for make in (row.ours, row.other)
        ]
        speeds: list[list[float]] = [[], []]
        for number in range(-1, runs):
            task = Task(prompt(row.num_prompt, seed=1000 + number, vocab_size=VOCAB_SIZE), row.num_new)
            for place, contender in enumerate(contenders):
                measured = contender.run(task)
                if number >= 0:
                    speeds[place].append(_counted(row, measured, is_ours=place == 0))
    return Result(row, *map(median, speeds))


def _counted(row: Row, speeds: Speeds, *, is_ours: bool) -> float:
    if row.what == "decode":
        return speeds.decode_tokens_per_s
    return speeds.prompt_tokens_per_s if is_ours else speeds.prompt_tokens_per_s / row.num_prompt


def report(results: list[Result]) -> str:
    """A table of all rows; speeds in tokens, or turns, per second."""
    head = f"{'':40}{'other':>9}{'kaiwa':>9}{'ratio':>8}{'to reach':>10}"
    return "\n".join([head, *map(_line, results)])


def _line(result: Result) -> str:
    row = result.row
    return f"{row.name:40}{result.other:9.2f}{result.ours:9.2f}{result.ratio:8.2f}{row.least_ratio:10.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--quick", action="store_true", help="one short run of what needs no peer")
    arguments = parser.parse_args()
    path = hub.resolve(arguments.model)
    chosen = [row for row in rows() if arguments.only in row.name]
    if arguments.quick:
        chosen = [row for row in chosen if "bare" in row.name]
    if not racers.is_installed("llama.cpp"):
        chosen = [row for row in chosen if "llama.cpp" not in row.name]
    runs = 1 if arguments.quick else arguments.runs
    print(report([run(row, path, threads=choose(arguments.threads), runs=runs) for row in chosen]))


if __name__ == "__main__":
    main()
