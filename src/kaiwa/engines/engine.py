"""The Engine protocol: token ids in, next tokens out.

An engine knows nothing about text, messages or people; it holds sequences of tokens and continues them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kaiwa.errors import NumericalError
from kaiwa.sampling import Sampling

Pooling = Literal["mean", "last"]


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
    cache_tokens: int = 0
    """How many tokens all sequences together may hold; what `fork` shares counts once."""
    max_sequences: int = 256
    """How many sequences may be open at a time."""
    is_recurrent: bool = False
    """Whether a sequence can only go back to checkpoints (see `keepable`), so that guesses cannot be taken back."""
    fingerprint: str = ""
    """Differs for engines of other weights or options: none of them can `restore` what another has saved."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one step computes of one sequence: its next `token_ids`, and a sampled token after them where asked.

    The last `num_guesses` of the `token_ids` are guesses at what would be sampled. The engine samples after the token
    before the first guess and goes on as long as what it samples is the guess: what comes out is exactly what would
    have come out one by one. Guesses that are wrong, and what follows them, are forgotten within the step.
    """

    sequence: int
    token_ids: Sequence[int]
    sample: bool = True
    num_guesses: int = 0
    allowed: bytes | None = None
    """What may be sampled: bit `id % 8` of byte `id // 8` for each token. Never together with guesses."""
    num_logprobs: int | None = None
    """How many of the most probable tokens to report with each sampled one, or None for no report."""


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Natural logarithms of probabilities, of the logits as the model computed them.

    That of the `sampled` token, and the `best` tokens with theirs, the most probable one first.
    """

    sampled: float
    best: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a slice's sampling gave: the guesses that were right, and one token after them."""

    token_ids: tuple[int, ...]
    logprobs: tuple[Logprobs, ...] = ()
    """One for each token where the slice asked for them."""
    error: NumericalError | None = None
    """Why there is no token, where the numbers of this slice are none. Those of other slices are as they would be."""


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
        penalties count what is sampled after this call. An engine may compute a prompt's tokens in other roundings than
        those behind them.
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

    def fork(self, sequence: int, length: int) -> int:
        """A new sequence that begins with the first `keepable(sequence, length)` tokens of another.

        Both share the memory of what they have in common, and neither sees what becomes of the other. The new one is
        not configured.
        """
        ...

    def num_free_tokens(self) -> int:
        """How many more tokens the sequences may take together, before one has to be closed."""
        ...

    def close(self, sequence: int) -> None:
        """Forget the sequence and give back the memory that no other shares."""
        ...

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        """Compute all slices in one pass, at most one of each sequence; None where nothing was to be sampled.

        What is computed of a sequence depends neither on what else is in the batch nor on how it is cut into slices.
        Raises `OutOfMemory` before anything is computed where the cache is full.
        """
        ...

    def embed(self, token_ids: Sequence[int], *, pooling: Pooling = "mean") -> memoryview[float]:
        """The final hidden states of a fresh sequence made into one vector: float32, shape (hidden_size,), not scaled.

        "mean" is over all tokens, "last" takes that of the last one.
        """
        ...

    def save(self, sequence: int) -> bytes:
        """What the engine holds of a sequence, for `restore` in an engine of the same model and options."""
        ...

    def restore(self, saved: bytes) -> int:
        """A new sequence from what `save` gave. Raises `UnusableFile` where it does not fit this engine."""
        ...

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        """Logits after every token of a fresh sequence: float32, shape (tokens, vocab_size)."""
        ...

    def shutdown(self) -> None:
        """Give all memory and threads back. The engine cannot be used after."""
        ...
