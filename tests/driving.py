"""Drive the built-in engine as a scheduler would: load a model, read a prompt in pieces, continue greedily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kaiwa.engines.engine import Engine, Slice
from kaiwa.engines.native.engine import NativeEngine, load
from kaiwa.sampling import Sampling
from kaiwa.weights.open import open_checkpoint

GREEDY = Sampling(do_sample=False)


@contextmanager
def loaded(path: Path, **options: Any) -> Iterator[NativeEngine]:
    """The engine with a model loaded, for the length of a `with` block."""
    checkpoint = open_checkpoint(path)
    engine = load(checkpoint, threads=2, **options)
    try:
        yield engine
    finally:
        engine.shutdown()
        checkpoint.close()


def start(engine: Engine, prompt: Sequence[int], *, chunk: int = 512) -> tuple[int, int]:
    """A new sequence that has read the prompt in pieces, and its first greedy token."""
    sequence = engine.open()
    engine.configure(sequence, GREEDY, prompt_ids=prompt)
    pieces = [prompt[first : first + chunk] for first in range(0, len(prompt), chunk)]
    for piece in pieces[:-1]:
        assert engine.step([Slice(sequence, piece, sample=False)]) == [None]
    return sequence, next_token(engine, sequence, pieces[-1])


def next_token(engine: Engine, sequence: int, token_ids: Sequence[int]) -> int:
    """What is sampled after some more tokens of a sequence."""
    (token,) = next_tokens(engine, Slice(sequence, token_ids))
    return token


def next_tokens(engine: Engine, *batch: Slice) -> list[int]:
    """What is sampled after each of some slices in one step."""
    sampled = engine.step(batch)
    assert all(one is not None and len(one.token_ids) == 1 for one in sampled)
    return [one.token_ids[0] for one in sampled if one is not None]


def continue_greedily(engine: Engine, sequence: int, token: int, num_tokens: int) -> list[int]:
    """`token` and what follows it, one step each."""
    tokens = [token]
    while len(tokens) < num_tokens:
        tokens.append(next_token(engine, sequence, tokens[-1:]))
    return tokens
