"""What bounds any engine: how fast this machine reads memory and multiplies, and how much of both a model asks for."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from math import prod
from pathlib import Path

from kaiwa.engines.native import _native
from kaiwa.runtime.loading.planning import cache_bytes_per_token
from kaiwa.weights.open import open_checkpoint

BANDWIDTH_BYTES = 512_000_000


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor with so many threads: bytes read per second, and products of two bytes per second."""

    name: str
    threads: int
    bandwidth: float
    dot_peak: float


@dataclass(frozen=True, slots=True)
class Work:
    """What a model asks for: bytes of weights to read per step, of cache per token of context, products per token."""

    vocab_size: int
    weights_bytes: int
    cache_bytes_per_token: int
    products: int


def measure(threads: int, *, passes: int) -> Machine:
    """This machine; the best of some passes, since whatever else runs here only takes."""
    return Machine(
        name=_processor(),
        threads=threads,
        bandwidth=max(_native.read_bandwidth(threads, BANDWIDTH_BYTES) for _ in range(passes)),
        dot_peak=max(_native.dot_peak(threads) for _ in range(passes)),
    )


def work_of(path: Path) -> Work:
    """The work of one token. Of embeddings one row is read, and of experts those that are active."""
    checkpoint = open_checkpoint(path)
    try:
        config = checkpoint.config
        weights_bytes = products = 0.0
        for name, tensor in checkpoint.tensors.items():
            if name == "model.embed_tokens.weight" and "lm_head.weight" in checkpoint.tensors:
                continue
            share = config["num_experts_per_tok"] / tensor.shape[0] if len(tensor.shape) == 3 else 1
            weights_bytes += share * len(tensor.data)
            products += share * prod(tensor.shape)
        cache_bytes = cache_bytes_per_token(config)
        return Work(config["vocab_size"], round(weights_bytes), cache_bytes, round(products))
    finally:
        checkpoint.close()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
