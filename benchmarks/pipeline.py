"""Kaiwa's pipeline beside transformers' own: the same checkpoint, the same chats, the same numbers of tokens.

    python benchmarks/pipeline.py FOLDER --transformers PYTHON

FOLDER holds an unquantized checkpoint; PYTHON is the interpreter of an environment that has torch and transformers.
Each contender is a process of its own, which begins with its imports. They take turns for some rounds, and the medians
count; what Kaiwa keeps of a quantized checkpoint is there from the first round on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

NUM_CHATS = 16
FIRST = [
    {"role": "system", "content": "You are a helpful science assistant."},
    {"role": "user", "content": "Hey, can you explain gravity to me?"},
]
SECOND = {"role": "user", "content": "Woah! But can it be reconciled with quantum mechanics?"}
TOPICS = ("gravity", "light", "water", "fire", "sound", "time", "bread", "rain")

Generate = Callable[..., Any]
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to run the checkpoint. `options` go to its pipeline; `needs_torch` says whose interpreter runs it."""

    name: str
    library: str
    options: dict[str, Any] = field(default_factory=dict)
    needs_torch: bool = True


CONTENDERS = {
    "kaiwa": Contender("kaiwa, as stored", "kaiwa", {"dtype": "auto"}, needs_torch=False),
    "int8": Contender("kaiwa, int8 on load", "kaiwa", {"model_kwargs": {"load_in_8bit": True}}, needs_torch=False),
    "torch": Contender("kaiwa, engine=torch", "kaiwa", {"engine": "torch", "dtype": "auto"}),
    "bfloat16": Contender("transformers, bfloat16", "transformers", {"dtype": "bfloat16"}),
    "nf4": Contender("transformers, nf4", "transformers", {"dtype": "bfloat16", "load_in_4bit": True}),
    "float32": Contender("transformers, float32", "transformers", {"dtype": "float32"}),
}


def main() -> None:
    """Measure all contenders and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--transformers", metavar="PYTHON", default=sys.executable)
    parser.add_argument(
        "--tokens", metavar="N", type=int, default=64, help="tokens of each answer; many chats get half"
    )
    parser.add_argument("--rounds", metavar="N", type=int, default=3)
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--child", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        print(json.dumps(measure(CONTENDERS[arguments.child], arguments.folder, arguments.tokens)))
        return
    found: dict[str, list[Figures]] = {name: [] for name in arguments.only}
    for _ in range(arguments.rounds):
        for name, rounds in found.items():
            rounds.append(measured(name, arguments))
    print(f"{'':24}{'conversation':>14}{'decode':>12}{f'{NUM_CHATS} chats':>12}{'peak memory':>14}")
    for name, rounds in found.items():
        print(row(CONTENDERS[name].name, rounds))


def measured(name: str, arguments: argparse.Namespace) -> Figures:
    """The figures of one contender, in a process of its own."""
    python = arguments.transformers if CONTENDERS[name].needs_torch else sys.executable
    command = [python, __file__, arguments.folder, "--child", name, "--tokens", str(arguments.tokens)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def row(name: str, rounds: Sequence[Figures]) -> str:
    """A line of the table: the median of all rounds."""
    found = {figure: median(each[figure] for each in rounds) for figure in rounds[0]}
    return (
        f"{name:24}{found['conversation_s']:>12.2f} s{found['decode']:>8.0f} t/s"
        f"{found['batch']:>8.0f} t/s{found['peak_bytes'] / 1e6:>11,.0f} MB"
    )


def measure(contender: Contender, folder: str, num_new: int) -> Figures:
    """Seconds from the import to the second answer; tokens per second of one chat and of many; peak memory in bytes."""
    started = time.perf_counter()
    generate = pipeline_of(contender, folder)
    flags: dict[str, Any] = {"do_sample": False}
    chat = generate(FIRST, max_new_tokens=num_new, **flags)[0]["generated_text"]
    generate([*chat, SECOND], max_new_tokens=num_new, **flags)
    conversation_s = time.perf_counter() - started

    def seconds(count: int) -> float:
        begun = time.perf_counter()
        generate("Gravity is", max_new_tokens=count, **{**flags, **lengths(contender, count)})
        return time.perf_counter() - begun

    seconds(2)
    decode = (num_new - 1) / (min(seconds(num_new) for _ in range(2)) - seconds(1))
    chats = [[{"role": "user", "content": f"Tell me about {TOPICS[n % 8]}, part {n}."}] for n in range(NUM_CHATS)]
    flags |= {"max_new_tokens": num_new // 2, **lengths(contender, num_new // 2)}
    begun = time.perf_counter()
    generate(chats, batch_size=NUM_CHATS, **flags)
    batch = NUM_CHATS * (num_new // 2) / (time.perf_counter() - begun)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"conversation_s": conversation_s, "decode": decode, "batch": batch, "peak_bytes": peak_bytes}


def pipeline_of(contender: Contender, folder: str) -> Generate:
    """The loaded pipeline."""
    if contender.library == "kaiwa":
        from kaiwa import pipeline

        return pipeline("text-generation", model=folder, **contender.options)
    from transformers import pipeline as theirs  # type: ignore[import-not-found]

    options = dict(contender.options)
    if options.pop("load_in_4bit", False):
        import torch  # type: ignore[import-not-found]
        from transformers import BitsAndBytesConfig

        config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
        options["model_kwargs"] = {"quantization_config": config}
    generate: Generate = theirs("text-generation", model=folder, **options)
    if generate.tokenizer.pad_token_id is None:  # type: ignore[attr-defined]
        generate.tokenizer.pad_token_id = 0  # type: ignore[attr-defined]
    return generate


def lengths(contender: Contender, num_new: int) -> dict[str, Any]:
    """What keeps an answer from ending early: of transformers, a least length; of Kaiwa, an end that never comes."""
    if contender.library == "transformers":
        return {"min_new_tokens": num_new}
    return {"logit_bias": {0: -100.0, 1: -100.0, 2: -100.0}}


if __name__ == "__main__":
    main()
