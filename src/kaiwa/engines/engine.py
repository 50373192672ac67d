"""The Engine protocol: token ids in, next tokens out.

An engine knows nothing about text, messages or people; it holds sequences of tokens and continues them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kaiwa.sampling import Sampling


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a loaded engine is. Memory in bytes."""

    name: str
    """The engine in words: "native (AVX-512 VNNI, 2 threads)"."""
    family: str
    """The model family: "llama"."""
    number_format: str
    """How most of the weights are stored: "Q4_1"."""
    vocab_size: int
    context_length: int
    num_parameters: int
    weights_bytes: int
    cache_bytes_per_token: int
    max_step_tokens: int
    """How many tokens one step takes at most, over all its slices."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one step computes of one sequence: its next `token_ids`, and a sampled token after them where asked."""

    sequence: int
    token_ids: Sequence[int]
    sample: bool = True


class Engine(Protocol):
    """A loaded model. Not thread-safe: one thread at a time calls it."""

    @property
    def info(self) -> EngineInfo: ...

    def open(self) -> int:
        """A new, empty sequence; its handle."""
        ...

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        """How tokens of this sequence are drawn from now on.

        `prompt_ids` are the tokens of its prompt, which the repetition penalty counts; the presence and frequency
        penalties count what is sampled after this call.
        """
        ...

    def length(self, sequence: int) -> int:
        """How many tokens of the sequence are computed."""
        ...

    def keepable(self, sequence: int, length: int) -> int:
        """How many of the sequence's first `length` tokens `truncate` can keep.

        All of them, but for models whose layers remember a sequence as one state: those go back to a checkpoint.
        """
        ...

    def truncate(self, sequence: int, length: int) -> None:
        """Forget what the sequence holds beyond `keepable(sequence, length)` tokens."""
        ...

    def close(self, sequence: int) -> None:
        """Forget the sequence and give its memory back."""
        ...

    def step(self, batch: Sequence[Slice]) -> list[int | None]:
        """Compute all slices in one pass; for each a sampled token id, or None where none was asked for."""
        ...

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        """Logits after every token of a fresh sequence: float32, shape (tokens, vocab_size)."""
        ...

    def shutdown(self) -> None:
        """Give all memory and threads back. The engine cannot be used after."""
        ...
