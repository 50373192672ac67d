"""How fast a model is here: medians of several runs, beside what the machine's memory allows and beside others."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from kaiwa.chat.model import ModelCard
from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.runtime.loading.loader import DEFAULT_MODEL
from kaiwa.runtime.loading.planning import active_bytes, decode_limit
from kaiwa.runtime.measuring import contenders
from kaiwa.runtime.measuring.contenders import Contender, Speeds, Task

PEERS = ("llama.cpp",)
CONTEXT_LENGTH = 2048
SHORT_PROMPT = 16
MAX_BANDWIDTH_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Measured:
    """One runtime's medians: tokens per second, seconds and bytes."""

    name: str
    load_s: float
    prompt_tokens_per_s: float
    decode_tokens_per_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """What `measure` found. `limit_share` is what decoding reaches of `decode_limit_tokens_per_s`."""

    card: ModelCard
    threads: int
    runs: int
    prompt_tokens: int
    new_tokens: int
    kaiwa: Measured
    first_token_s: float
    """Of a prompt of ten tokens, right after loading."""
    active_weights_bytes: int
    """What one token reads of the weights: of a mixture, not all experts."""
    bandwidth_bytes_per_s: float
    decode_limit_tokens_per_s: float
    limit_share: float
    peer: Measured | None = None

    @property
    def prompt_ratio(self) -> float | None:
        """Kaiwa's speed of reading over the peer's."""
        return self.kaiwa.prompt_tokens_per_s / self.peer.prompt_tokens_per_s if self.peer else None

    @property
    def decode_ratio(self) -> float | None:
        """Kaiwa's speed of writing over the peer's."""
        return self.kaiwa.decode_tokens_per_s / self.peer.decode_tokens_per_s if self.peer else None

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, for JSON."""
        return {
            **dataclasses.asdict(self),
            "prompt_ratio": self.prompt_ratio,
            "decode_ratio": self.decode_ratio,
        }


def measure(
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    threads: int | None = None,
    prompt_tokens: int = 512,
    new_tokens: int = 64,
    runs: int = 5,
    quantization: str | None = None,
    against: str | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Measure `model`, and `against` a peer on the same file if asked, in alternating runs.

    `quantization` is what `LLM` takes; the peer has the weights as they are.

    `on_run` is told how many of how many runs are done. Raises what `LLM` raises, `InvalidOption` for an unknown peer
    or impossible numbers, and `MissingExtra` where the peer is not installed.
    """
    from kaiwa.engines.native.threads import choose
    from kaiwa.weights.hub import resolve

    _check_numbers(prompt_tokens, new_tokens, runs)
    makes: list[contenders.Make] = [partial(contenders.load_kaiwa, quantization=quantization), *_peers(against)]
    path = resolve(model)
    threads = choose(threads)
    with ExitStack() as children:
        racers = [
            children.enter_context(Contender(make, path, threads=threads, context_length=CONTEXT_LENGTH))
            for make in makes
        ]
        ours = racers[0].loaded
        assert ours.card is not None
        bandwidths = [_bandwidth(threads, ours.card.weights_bytes)]
        prompts, answers = _race(racers, list(ours.text_ids), (prompt_tokens, new_tokens), runs, on_run)
    bandwidths.append(_bandwidth(threads, ours.card.weights_bytes))
    measured = [_medians(racer, prompt, answer) for racer, prompt, answer in zip(racers, prompts, answers, strict=True)]
    active = _active_bytes(path, ours.card.weights_bytes)
    limit = _limit(ours.card, active, new_tokens, max(bandwidths))
    return Report(
        card=ours.card,
        threads=threads,
        runs=runs,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        kaiwa=measured[0],
        first_token_s=ours.first_token_s,
        active_weights_bytes=active,
        bandwidth_bytes_per_s=max(bandwidths),
        decode_limit_tokens_per_s=limit,
        limit_share=measured[0].decode_tokens_per_s / limit,
        peer=measured[1] if len(measured) > 1 else None,
    )


def _race(
    racers: list[Contender],
    text_ids: list[int],
    sizes: tuple[int, int],
    runs: int,
    on_run: Callable[[int, int], None],
) -> tuple[list[list[Speeds]], list[list[Speeds]]]:
    """Each racer's speeds of long prompts, and those of short prompts with long answers; nobody runs beside another."""
    prompt_tokens, new_tokens = sizes
    prompts: list[list[Speeds]] = [[] for _ in racers]
    answers: list[list[Speeds]] = [[] for _ in racers]
    for number in range(runs):
        for index, racer in enumerate(racers):
            prompts[index].append(racer.run(Task(_text(text_ids, number, prompt_tokens), 1)))
            answers[index].append(racer.run(Task(_text(text_ids, number, SHORT_PROMPT), new_tokens)))
        on_run(number + 1, runs)
    return prompts, answers


def _text(text_ids: list[int], number: int, length: int) -> list[int]:
    """`length` tokens that begin otherwise in every run, so that nothing of an earlier one can be used again."""
    start = 1 + number * 2 % len(text_ids)
    repeats = 2 + length // len(text_ids)
    return [text_ids[(number * 7 + length) % len(text_ids)], *(text_ids * repeats)[start : start + length - 1]]


def _medians(racer: Contender, prompts: list[Speeds], answers: list[Speeds]) -> Measured:
    return Measured(
        name=racer.loaded.name,
        load_s=racer.loaded.load_s,
        prompt_tokens_per_s=median(speeds.prompt_tokens_per_s for speeds in prompts),
        decode_tokens_per_s=median(speeds.decode_tokens_per_s for speeds in answers),
        peak_bytes=max(speeds.peak_bytes for speeds in [*prompts, *answers]),
    )


def _active_bytes(path: Path, weights_bytes: int) -> int:
    from kaiwa.weights.open import open_checkpoint

    with closing(open_checkpoint(path)) as checkpoint:
        tensor_bytes = {name: tensor.num_bytes for name, tensor in checkpoint.tensors.items()}
        return active_bytes(checkpoint.config, weights_bytes, tensor_bytes)


def _limit(card: ModelCard, active: int, new_tokens: int, bandwidth: float) -> float:
    per_token = card.cache_bytes // card.context_length
    return decode_limit(active, per_token * (SHORT_PROMPT + new_tokens // 2), bandwidth)


def _bandwidth(threads: int, num_bytes: int) -> float:
    """Bytes per second that the threads can read together, over as many bytes as the model has.

    A small model may stay in the processor's last cache from one token to the next, which is faster than memory.
    """
    from kaiwa.engines.native import _native

    return float(_native.read_bandwidth(threads, min(num_bytes, MAX_BANDWIDTH_BYTES)))


def _peers(against: str | None) -> list[contenders.Make]:
    if against is None:
        return []
    if against not in PEERS:
        raise InvalidOption(f"there is no runtime {against!r} to measure", hint=did_you_mean(against, PEERS))
    return [contenders.installed_llama_cpp()]


def _check_numbers(prompt_tokens: int, new_tokens: int, runs: int) -> None:
    for name, value, low, high in (
        ("prompt_tokens", prompt_tokens, 1, CONTEXT_LENGTH - 1),
        ("new_tokens", new_tokens, 2, CONTEXT_LENGTH - SHORT_PROMPT),
        ("runs", runs, 1, 1000),
    ):
        if not low <= value <= high:
            raise InvalidOption(f"{name}={value!r} is impossible", hint=f"{name} must be from {low} to {high:,}")
