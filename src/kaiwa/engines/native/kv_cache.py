"""Which blocks of the key-value cache belong to which sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from kaiwa.engines.native._native import KvCache, Sampler
from kaiwa.errors import OutOfMemory

BLOCK_TOKENS = 32


@dataclass(slots=True)
class Sequence:
    """Tokens that are computed: `length` of them, in `blocks` of 32, and in a `state` where layers are recurrent."""

    length: int = 0
    blocks: list[int] = field(default_factory=list)
    state: int = -1
    num_prompt_tokens: int = 0
    sampler: Sampler | None = None
    is_long: bool = False
    """Whether it was read with the frequencies of a long sequence, where the rope has two sets."""
    token_ids: list[int] = field(default_factory=list)
    """The computed tokens, kept where the rope has two sets."""


class BlockPool:
    """Hands out cache blocks, lowest first, so that memory in use stays together."""

    def __init__(self, cache: KvCache) -> None:
        self._cache = cache
        self._free = list(range(cache.num_blocks - 1, -1, -1))

    def extend(self, sequence: Sequence, length: int) -> None:
        """Give the sequence the blocks that `length` tokens need. Raises `OutOfMemory` and changes nothing."""
        missing = -(-length // BLOCK_TOKENS) - len(sequence.blocks)
        if missing > len(self._free):
            raise OutOfMemory(
                f"the key-value cache of {self._cache.num_blocks * BLOCK_TOKENS:,} tokens is full",
                hint="close other sequences, or load the model with a shorter context_length",
            )
        for _ in range(missing):
            sequence.blocks.append(self._free.pop())

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Take back the blocks beyond `length` tokens, and their memory."""
        sequence.length = min(sequence.length, length)
        kept = -(-sequence.length // BLOCK_TOKENS)
        for block in sequence.blocks[kept:]:
            self._cache.discard(block)
            self._free.append(block)
        del sequence.blocks[kept:]
        self._free.sort(reverse=True)
