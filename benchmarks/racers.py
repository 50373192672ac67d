"""What runs against what: each runtime with any number of sequences that decode together, in a process of its own."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from kaiwa import __version__
from kaiwa.engines.engine import Slice
from kaiwa.engines.native.engine import NativeEngine, load
from kaiwa.runtime.measuring.contenders import Loaded, Make, Run, Task
from kaiwa.sampling import Sampling
from kaiwa.weights.open import open_checkpoint

GREEDY = Sampling(do_sample=False)


def kaiwa(num_sequences: int = 1) -> Make:
    """Kaiwa's engine, without the tokenizer and the scheduler around it."""
    return partial(_load_kaiwa, num_sequences)


def llama_cpp(num_sequences: int = 1) -> Make:
    """llama.cpp as the package xllamacpp has it."""
    return partial(_load_llama_cpp, num_sequences)


def openvino(num_sequences: int = 1) -> Make:
    """OpenVINO GenAI, which reads some GGUF files, too. One sequence only."""
    assert num_sequences == 1
    return _load_openvino


def is_installed(peer: str) -> bool:
    """Whether the package of a peer is there."""
    return importlib.util.find_spec({"llama.cpp": "xllamacpp", "openvino": "openvino_genai"}[peer]) is not None


def prompt(length: int, *, seed: int, vocab_size: int) -> list[int]:
    """Tokens that no other seed's prompt begins with."""
    return random.Random(seed).choices(range(3, vocab_size), k=length)


def load_engine(path: Path | str, threads: int, context_length: int) -> NativeEngine:
    """The engine with a model loaded."""
    checkpoint = open_checkpoint(Path(path))
    try:
        return load(checkpoint, threads=threads, context_length=context_length)
    finally:
        checkpoint.close()


def _load_kaiwa(num_sequences: int, path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    started = time.perf_counter()
    engine = load_engine(path, threads, context_length)
    load_s = time.perf_counter() - started
    sequences = [engine.open() for _ in range(num_sequences)]
    read: list[int] = []  # by every sequence, in an earlier task

    def run(task: Task) -> tuple[float, float]:
        same = 0 if task.token_ids != read else len(read) - 1
        read[:] = task.token_ids
        for sequence in sequences:
            engine.configure(sequence, GREEDY, prompt_ids=task.token_ids)
        prompt_s, tokens = _read(engine, sequences, task.token_ids[same:], same)
        started = time.perf_counter()
        for _ in range(task.num_new - 1):
            batch = [Slice(sequence, [token]) for sequence, token in zip(sequences, tokens, strict=True)]
            tokens = [sampled.token_ids[0] for sampled in engine.step(batch) if sampled]
        decode_s = time.perf_counter() - started
        num_read = num_sequences * (len(task.token_ids) - same)
        num_written = num_sequences * (task.num_new - 1)
        return num_read / prompt_s, num_written / decode_s if num_written else 0.0

    return Loaded(f"kaiwa {__version__}", load_s), run


def _read(engine: NativeEngine, sequences: Sequence[int], token_ids: list[int], same: int) -> tuple[float, list[int]]:
    """Read a prompt of which `same` tokens are read already; the seconds, and each sequence's first token."""
    started = time.perf_counter()
    firsts: list[int] = []
    for sequence in sequences:
        engine.truncate(sequence, same)
        pieces = range(0, len(token_ids), engine.info.max_step_tokens)
        for start in pieces:
            piece = token_ids[start : start + engine.info.max_step_tokens]
            [sampled] = engine.step([Slice(sequence, piece, sample=start == pieces[-1])])
        firsts += sampled.token_ids if sampled else ()
    return time.perf_counter() - started, firsts


def _load_llama_cpp(num_sequences: int, path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context_length * num_sequences
    parameters.n_parallel = num_sequences
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = -1
    started = time.perf_counter()
    server = xllamacpp.Server(parameters)
    load_s = time.perf_counter() - started
    # A thread that waits for an answer takes no time of those that compute.
    callers = ThreadPoolExecutor(num_sequences)

    def complete(task: Task) -> dict[str, float]:
        request = {"prompt": task.token_ids, "n_predict": task.num_new, "temperature": 0, "ignore_eos": True}
        timings: dict[str, float] = server.handle_completions(request)["timings"]
        return timings

    def run(task: Task) -> tuple[float, float]:
        answers = list(callers.map(complete, [task] * num_sequences))
        # Side by side, each sequence's speed is its share of the whole.
        return answers[0]["prompt_per_second"], sum(timings["predicted_per_second"] for timings in answers)

    return Loaded(f"llama.cpp (xllamacpp {importlib.metadata.version('xllamacpp')})", load_s), run


def _load_openvino(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    import openvino
    import openvino_genai

    started = time.perf_counter()
    pipeline = openvino_genai.LLMPipeline(path, "CPU", {"INFERENCE_NUM_THREADS": threads})
    load_s = time.perf_counter() - started
    options = openvino_genai.GenerationConfig()
    options.ignore_eos = True

    def run(task: Task) -> tuple[float, float]:
        options.max_new_tokens = task.num_new
        token_ids = openvino.Tensor(np.array([task.token_ids], dtype=np.int64))
        metrics = pipeline.generate(token_ids, options).perf_metrics
        decode_speed = 1000 / metrics.get_tpot().mean if task.num_new > 1 else 0.0
        return 1000 * len(task.token_ids) / metrics.get_ttft().mean, decode_speed

    return Loaded(f"OpenVINO GenAI {importlib.metadata.version('openvino-genai')}", load_s), run


PEERS = {"llama.cpp": llama_cpp, "openvino": openvino}
