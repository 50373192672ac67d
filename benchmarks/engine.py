"""The engine beside others: the same file, the same machine, alternating runs, medians.

    make speed                        # everything: about half an hour
    make speed ARGS='--only prompt'   # the rows that have "prompt" in their name
    make speed ARGS=--quick           # seconds, to see that it works

`README.md` says what each row means.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import machine
import racers
import write_models
from kaiwa.engines.engine import Slice
from kaiwa.engines.native.threads import choose
from kaiwa.errors import KaiwaError
from kaiwa.runtime.measuring.contenders import Contender, Speeds, Task
from kaiwa.weights import hub

SMOLLM2 = "smollm2:135m"
DEEP = 8192
SHORT = 16


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `num_prompt` and `num_new` tokens of each sequence; what counts is `what` of the two.

    `least_ratio` is what to reach of the peer's speed, `least_share` of what memory allows.
    """

    name: str
    model: str
    what: str
    num_prompt: int = SHORT
    num_new: int = 64
    num_sequences: int = 1
    least_ratio: float | None = None
    least_share: float | None = None
    peer: str = "llama.cpp"


ROWS = (
    Row("decode smollm2", SMOLLM2, "decode", least_ratio=2.0),
    Row("prompt smollm2", SMOLLM2, "prompt", 512, 1, least_ratio=4.0),
    Row("prompt smollm2", SMOLLM2, "prompt", 512, 1, least_ratio=2.0, peer="openvino"),
    Row("decode 1.1b q4_0", "1.1b-q4_0", "decode", least_ratio=1.0, least_share=0.92),
    Row("decode 1.1b q4_k", "1.1b-q4_k", "decode", least_ratio=1.0, least_share=0.92),
    Row("decode 1.1b q8_0", "1.1b-q8_0", "decode", least_ratio=1.0, least_share=0.92),
    Row("prompt 1.1b q4_0", "1.1b-q4_0", "prompt", 512, 1, least_ratio=2.0),
    Row("prompt 1.1b q4_k", "1.1b-q4_k", "prompt", 512, 1, least_ratio=2.0),
    Row("prompt 1.1b q8_0", "1.1b-q8_0", "prompt", 512, 1),
    Row("eight smollm2", SMOLLM2, "decode", num_sequences=8, least_ratio=2.5),
    Row("eight 1.1b q4_0", "1.1b-q4_0", "decode", num_sequences=8, least_ratio=2.5),
    Row("moe decode", "moe-q4_0", "decode", least_share=0.9),
    Row("context 128 smollm2", SMOLLM2, "decode", 128 - 33, 33),
    # The cache's bytes are part of what memory allows, so that both depths of context have a share to compare.
    Row("context 8192 smollm2", SMOLLM2, "decode", DEEP - 33, 33),
)


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of one row, in tokens per second over all sequences; `limit` is what memory allows in decoding."""

    row: Row
    kaiwa: float
    peer: float
    limit: float | None
    work: machine.Work

    @property
    def ratio(self) -> float:
        """Kaiwa's speed over the peer's."""
        return self.kaiwa / self.peer

    @property
    def share(self) -> float | None:
        """Kaiwa's speed over what memory allows."""
        return self.kaiwa / self.limit if self.limit else None


def main() -> None:
    """Measure what was asked for, and print it."""
    arguments = _parse()
    threads = choose(arguments.threads)
    rows = [row for row in ROWS if any(part in row.name for part in arguments.only)]
    if arguments.quick:
        rows = [_shortened(row) for row in rows if row.model == SMOLLM2]
    here = machine.measure(threads, passes=1 if arguments.quick else 3)
    results = []
    for row in rows:
        print(f"{row.name}, {row.peer} …", end=" ", file=sys.stderr, flush=True)
        if not racers.is_installed(row.peer):
            print("left out: it is not installed", file=sys.stderr)
            continue
        try:
            result = run(row, here, runs=1 if arguments.quick else arguments.runs)
        except KaiwaError as error:  # one row's trouble takes nothing from the others
            print(f"left out: {error}", file=sys.stderr)
            continue
        print(f"{result.kaiwa:,.1f} tokens/s", file=sys.stderr)
        results.append(result)
    measured = [result.row for result in results]
    profiles = {row.name: profile(row, threads) for row in measured if arguments.profile in row.name}
    print(_as_json(here, results, profiles) if arguments.json else report(here, results, profiles))


def run(row: Row, here: machine.Machine, *, runs: int) -> Result:
    """Measure one row: Kaiwa and the peer in turn, after a run of each that does not count."""
    path = model_path(row.model)
    work = machine.work_of(path)
    makes = [racers.kaiwa(row.num_sequences), racers.PEERS[row.peer](row.num_sequences)]
    with ExitStack() as children:
        contenders = [
            children.enter_context(Contender(make, path, threads=here.threads, context_length=_context_length(row)))
            for make in makes
        ]
        speeds: list[list[float]] = [[] for _ in contenders]
        for number in range(-1, runs):
            # A decode task may use the prompt of the run before: what counts comes after it.
            seed = number if row.what == "prompt" else 0
            task = Task(racers.prompt(row.num_prompt, seed=seed, vocab_size=work.vocab_size), row.num_new)
            for contender, ones_speeds in zip(contenders, speeds, strict=True):
                measured = contender.run(task)
                if number >= 0:
                    ones_speeds.append(_counted(row, measured))
    kaiwa, peer = map(median, speeds)
    limit = None
    if row.what == "decode":
        depth = row.num_prompt + row.num_new // 2
        step_bytes = work.weights_bytes + row.num_sequences * depth * work.cache_bytes_per_token
        limit = row.num_sequences * here.bandwidth / step_bytes
    return Result(row, kaiwa, peer, limit, work)


def profile(row: Row, threads: int) -> Mapping[str, float]:
    """Seconds that each kind of step takes, of one step of the engine: what counts in `row`, without its peer."""
    engine = racers.load_engine(model_path(row.model), threads, _context_length(row))
    sequences = [engine.open() for _ in range(row.num_sequences)]
    prompt = racers.prompt(row.num_prompt, seed=0, vocab_size=engine.info.vocab_size)
    size = engine.info.max_step_tokens
    pieces = [prompt[start : start + size] for start in range(0, len(prompt), size)]

    def read() -> int:
        for sequence in sequences:
            engine.configure(sequence, racers.GREEDY, prompt_ids=prompt)
            engine.truncate(sequence, 0)
            for piece in pieces:
                engine.step([Slice(sequence, piece, sample=False)])
        return len(sequences) * len(pieces)

    def write() -> int:
        for _ in range(row.num_new):
            engine.step([Slice(sequence, prompt[:1], sample=False) for sequence in sequences])
        return row.num_new

    read()
    engine.set_profiling(True)
    num_steps = read() if row.what == "prompt" else write()
    seconds: dict[str, float] = defaultdict(float)
    for kind, taken in engine.profile():
        seconds[kind] += taken / num_steps
    engine.shutdown()
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def model_path(model: str) -> Path:
    """The file of a model with a name, or of a shape that is written on demand."""
    return write_models.model(model) if model in write_models.SHAPES else hub.resolve(model)


def report(here: machine.Machine, results: list[Result], profiles: Mapping[str, Mapping[str, float]]) -> str:
    """Everything as a page of text."""
    lines = [
        f"{here.name}, {here.threads} threads; memory reads {here.bandwidth / 1e9:.1f} GB/s, "
        f"int8 dot products reach {here.dot_peak / 1e9:,.0f} GMAC/s",
        "",
        f"{'tokens per second':<24}{'peer':>12}{'':>10}{'kaiwa':>10}{'ratio':>8}{'to reach':>10}  of what is possible",
    ]
    for result in results:
        row = result.row
        lines.append(
            f"{row.name:<24}"
            f"{row.peer:>12}{result.peer:>10,.1f}{result.kaiwa:>10,.1f}{result.ratio:>8.2f}"
            f"{_wanted(row):>10}  {_share(result, here)}"
        )
    for name, seconds in profiles.items():
        total = sum(seconds.values())
        lines += ["", f"{name}: {total * 1e3:,.2f} ms per step"]
        lines += [f"  {kind:<22}{taken * 1e3:>10,.2f} ms{taken / total:>7.0%}" for kind, taken in seconds.items()]
    return "\n".join(lines)


def _share(result: Result, here: machine.Machine) -> str:
    if result.share is None:
        return f"{result.kaiwa * result.work.products / here.dot_peak:.0%} of the dot products"
    wanted = f", to reach {result.row.least_share:.0%}" if result.row.least_share else ""
    return f"{result.share:.0%} of the bandwidth{wanted}"


def _wanted(row: Row) -> str:
    return "" if row.least_ratio is None else f"{row.least_ratio:.1f}"


def _as_json(here: machine.Machine, results: list[Result], profiles: Mapping[str, Mapping[str, float]]) -> str:
    rows = [{**asdict(result), "ratio": result.ratio, "share": result.share} for result in results]
    return json.dumps({"machine": asdict(here), "rows": rows, "profiles": profiles}, indent=2)


def _counted(row: Row, measured: Speeds) -> float:
    return measured.prompt_tokens_per_s if row.what == "prompt" else measured.decode_tokens_per_s


def _context_length(row: Row) -> int:
    return -(-(row.num_prompt + row.num_new) // 256) * 256


def _shortened(row: Row) -> Row:
    return replace(row, num_prompt=min(row.num_prompt, 128), num_new=min(row.num_new, 8))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="PART", help="rows whose name has one of these parts"
    )
    parser.add_argument("--quick", action="store_true", help="SmolLM2 only, once, and short: the numbers mean little")
    parser.add_argument("--json", action="store_true", help="print JSON, with all that was measured")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="take medians of N runs (default: 5)")
    parser.add_argument("--threads", type=int, metavar="N", help="processor threads (default: as many as help)")
    parser.add_argument(
        "--profile",
        default="1.1b q4_0",
        metavar="PART",
        help="show where the time goes in such rows",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
