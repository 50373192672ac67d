"""The server beside llama.cpp's and transformers', and beside its own engine: tokens per second over HTTP.

    python benchmarks/server.py            # some minutes
    python benchmarks/server.py --quick    # to see that it works
    python benchmarks/server.py --transformers .venv-oracle/bin/python --checkpoint FOLDER

The servers run in processes of their own and take turns; medians count. `FOLDER` has the model in transformers' form.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import light_client
import racers
from kaiwa.engines.native.threads import choose
from kaiwa.runtime.measuring.contenders import Contender, Task
from kaiwa.weights import hub

MODEL = "smollm2:135m"
END_ID = 2
"""SmolLM2's <|im_end|>, which is held back so that all answers are equally long."""
NUM_STREAMS = 8
PROMPT_TOKENS = 24
"""As many as the server's prompts have."""
LEAST_RATIO = 2.2
LEAST_TRANSFORMERS_RATIO = 8.0
LEAST_SHARE = 0.97
PATIENCE_S = 120.0
"""How long transformers may take to load a model."""

Address = tuple[str, int]


@contextmanager
def kaiwa_serve(*flags: str) -> Iterator[Address]:
    """`kaiwa serve` as people start it; its address."""
    command = [sys.executable, "-m", "kaiwa.cli.main", "serve", MODEL, "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split(" at ")[1].split("/v1")[0]
            host, port = url.removeprefix("http://").split(":")
            yield host, int(port)
        finally:
            process.terminate()


@contextmanager
def llama_server(threads: int) -> Iterator[Address]:
    """llama.cpp's server, as the package xllamacpp has it; its address."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve_llama_cpp, args=(there, os.fspath(hub.resolve(MODEL)), threads)
    )
    process.start()
    try:
        host, port = here.recv().removeprefix("http://").split(":")
        yield host, int(port)
    finally:
        process.kill()
        process.join()


def _serve_llama_cpp(connection: Connection, path: str, threads: int) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = 2048 * NUM_STREAMS
    parameters.n_parallel = NUM_STREAMS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    connection.send(server.listening_address)
    while True:
        time.sleep(60)


@contextmanager
def transformers_serve(python: str, checkpoint: str) -> Iterator[Address]:
    """`transformers serve` of an environment, with continuous batching; its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address: Address = free.getsockname()
    program = str(Path(python).with_name("transformers"))
    command = [program, "serve", checkpoint, "--continuous-batching", "--port", str(address[1])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not _is_up(address):
                assert time.monotonic() < deadline, "transformers serve does not come up"
                assert process.poll() is None, "transformers serve ended by itself"
                time.sleep(0.5)
            yield address
        finally:
            process.terminate()


def _is_up(address: Address) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


async def speed(address: Address, num_streams: int, num_new: int, run: int, *, model: str = MODEL) -> float:
    """Tokens per second of so many streams at once, from the first question to the last answer."""

    def body(number: int) -> dict[str, object]:
        # Different beginnings, so that nobody answers from memory.
        prompt = f"Story {run}.{number}. Once upon a time, in a village by the sea, there lived"
        asked = {"model": model, "prompt": prompt, "max_tokens": num_new, "temperature": 0}
        return asked | ({"logit_bias": {str(END_ID): -100, "0": -100}} if model == MODEL else {})

    started = time.perf_counter()
    answers = await asyncio.gather(
        *(light_client.stream(address, "/v1/completions", body(number)) for number in range(num_streams))
    )
    taken_s = time.perf_counter() - started
    assert {answer.status for answer in answers} == {200}, answers[0].text[:500]
    return sum(answer.num_tokens for answer in answers) / taken_s


def compare(num_new: int, runs: int, threads: int) -> tuple[float, float, float, float]:
    """Medians of alternating runs: eight streams here and there, one stream here, and the engine alone."""
    path = os.fspath(hub.resolve(MODEL))
    with (
        kaiwa_serve() as ours,
        llama_server(threads) as theirs,
        Contender(racers.kaiwa(), path, threads=threads, context_length=2048) as engine,
    ):
        asyncio.run(speed(ours, 1, 8, -1))
        here, there, one, alone = [], [], [], []
        for run in range(runs):
            here.append(asyncio.run(speed(ours, NUM_STREAMS, num_new, run)))
            there.append(asyncio.run(speed(theirs, NUM_STREAMS, num_new, run)))
            one.append(asyncio.run(speed(ours, 1, num_new, 1000 + run)))
            alone.append(_whole_speed(engine, racers.prompt(PROMPT_TOKENS, seed=run, vocab_size=40_000), num_new))
    return median(here), median(there), median(one), median(alone)


def _whole_speed(engine: Contender, token_ids: list[int], num_new: int) -> float:
    """Tokens per second from the question to the end of the answer, as a client sees it."""
    speeds = engine.run(Task(token_ids, num_new))
    taken_s = len(token_ids) / speeds.prompt_tokens_per_s + (num_new - 1) / speeds.decode_tokens_per_s
    return num_new / taken_s


def beside_transformers(num_new: int, runs: int, python: str, checkpoint: str) -> tuple[float, float]:
    """Medians of alternating runs of eight streams, here and there."""
    with kaiwa_serve() as ours, transformers_serve(python, checkpoint) as theirs:
        asyncio.run(speed(ours, NUM_STREAMS, 8, -1))
        asyncio.run(speed(theirs, NUM_STREAMS, 8, -1, model=checkpoint))
        here, there = [], []
        for run in range(runs):
            here.append(asyncio.run(speed(ours, NUM_STREAMS, num_new, run)))
            there.append(asyncio.run(speed(theirs, NUM_STREAMS, num_new, run, model=checkpoint)))
    return median(here), median(there)


def main() -> int:
    """Measure and print; 1 where what is to be reached is not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short run of each")
    parser.add_argument("--runs", type=int, default=5, help="medians of so many runs (default: 5)")
    parser.add_argument("--transformers", metavar="PYTHON", help="the interpreter of an environment that has it")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="what transformers serves")
    arguments = parser.parse_args()
    if (arguments.transformers is None) != (arguments.checkpoint is None):
        parser.error("--transformers and --checkpoint come together")
    runs, num_new = (1, 16) if arguments.quick else (arguments.runs, 128)
    threads = choose(None)
    ours, theirs, one, alone = compare(num_new, runs, threads)
    rows: list[tuple[str, float, float, float]] = [
        ("eight streams beside llama.cpp's server", ours, theirs, LEAST_RATIO),
        ("one stream beside the engine alone", one, alone, LEAST_SHARE),
    ]
    if arguments.transformers is not None:
        row = beside_transformers(num_new, runs, arguments.transformers, arguments.checkpoint)
        rows.append(("eight streams beside transformers serve", *row, LEAST_TRANSFORMERS_RATIO))
    for name, value, other, least in rows:
        print(f"{name:42} {value:7.1f} {other:7.1f} tokens/s  {value / other:5.2f} times (to reach: {least})")
    return 0 if arguments.quick or all(value >= least * other for _, value, other, least in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
