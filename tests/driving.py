"""Drive the built-in engine as a scheduler would: load a model, read a prompt in pieces, continue greedily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kaiwa.engines.engine import Engine, Slice
from kaiwa.engines.native.engine import load
from kaiwa.sampling import Sampling
from kaiwa.weights.open import open_checkpoint

GREEDY = Sampling(do_sample=False)


@contextmanager
def loaded(path: Path, *, context_length: int | None = None) -> Iterator[Engine]:
    """The engine with a model loaded, for the length of a `with` block."""
    checkpoint = open_checkpoint(path)
    engine = load(checkpoint, threads=2, context_length=context_length, on_progress=None)
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
    (token,) = engine.step([Slice(sequence, pieces[-1])])
    assert token is not None
    return sequence, token


def continue_greedily(engine: Engine, sequence: int, token: int, num_tokens: int) -> list[int]:
    """`token` and what follows it, one step each."""
    tokens = [token]
    while len(tokens) < num_tokens:
        (next_token,) = engine.step([Slice(sequence, tokens[-1:])])
        assert next_token is not None
        tokens.append(next_token)
    return tokens
