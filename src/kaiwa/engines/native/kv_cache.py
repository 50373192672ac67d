"""Which blocks of the key-value cache belong to which sequence, or to several that begin alike."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass, field

from kaiwa.engines.native._native import BlockTable, KvCache, Sampler
from kaiwa.errors import OutOfMemory

BLOCK_TOKENS = 32


@dataclass(slots=True, eq=False)
class Sequence:
    """Tokens that are computed: `length` of them, in `blocks` of 32, and in a `state` where layers are recurrent."""

    blocks: BlockTable
    length: int = 0
    state: int = -1
    num_prompt_tokens: int = 0
    sampler: Sampler | None = None
    is_long: bool = False
    """Whether it was read with the frequencies of a long sequence, where the rope has two sets."""
    token_ids: list[int] = field(default_factory=list)
    """The computed tokens, kept where the rope has two sets."""


@dataclass(frozen=True, slots=True)
class Write:
    """The positions [begin, end) of a sequence, which a step writes; it has all before them."""

    sequence: Sequence
    begin: int
    end: int


class BlockPool:
    """Hands out cache blocks, lowest first, so that memory in use stays together.

    Sequences that were forked share blocks; one is copied before the first of its owners writes into it.
    """

    def __init__(self, cache: KvCache) -> None:
        self._cache = cache
        self._free = list(range(cache.num_blocks))
        """A heap."""
        self._num_owners = [0] * cache.num_blocks

    @property
    def num_tokens(self) -> int:
        """How many tokens all blocks together hold."""
        return self._cache.num_blocks * BLOCK_TOKENS

    def new_table(self) -> BlockTable:
        """The blocks of an empty sequence."""
        return BlockTable(self._cache)

    def reserve(self, writes: Collection[Write]) -> None:
        """Give each sequence blocks of its own for what is written. Raises `OutOfMemory` and changes nothing."""
        if sum(map(self._num_missing, writes)) > len(self._free):
            raise OutOfMemory(
                f"the key-value cache of {self.num_tokens:,} tokens is full",
                hint="close other sequences, or load the model with a shorter context_length",
            )
        for write in writes:
            for index in self._shared(write):
                self._make_own(write, index)
            for _ in range(num_blocks(write.end) - len(write.sequence.blocks)):
                write.sequence.blocks.append(self._take())

    def fork(self, sequence: Sequence, length: int, twin: Sequence) -> None:
        """Let the empty `twin` share the blocks of the sequence's first `length` tokens."""
        for index in range(num_blocks(length)):
            block = sequence.blocks[index]
            self._num_owners[block] += 1
            twin.blocks.append(block)
        twin.length = length

    def fill(self, sequence: Sequence, length: int, saved: bytes | memoryview) -> None:
        """Give the empty sequence `length` tokens, whose blocks hold what `contents` said of another."""
        self.reserve([Write(sequence, 0, length)])
        self._cache.write(sequence.blocks, saved)
        sequence.length = length

    def contents(self, sequence: Sequence) -> bytes:
        """What the blocks of the sequence's tokens hold."""
        return self._cache.read(sequence.blocks, num_blocks(sequence.length))

    def contents_bytes(self, length: int) -> int:
        """How many bytes that is for so many tokens."""
        return num_blocks(length) * self._cache.block_bytes

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Take back the blocks beyond `length` tokens, and the memory of those that no other sequence shares."""
        sequence.length = min(sequence.length, length)
        kept = num_blocks(sequence.length)
        for index in range(kept, len(sequence.blocks)):
            self._release(sequence.blocks[index])
        sequence.blocks.cut(kept)

    def num_free_tokens(self, sequences: Collection[Sequence]) -> int:
        """How many tokens surely find a place, however these sequences share them out.

        The next block that a sequence needs costs it one token more than its last one has room for, and each one
        after that costs 32: as many tokens find a place as one less than what it takes to need one block too many.
        """
        one_too_many = len(self._free) + 1
        firsts = sorted(self._room(sequence) + 1 for sequence in sequences)[:one_too_many]
        return sum(firsts) + BLOCK_TOKENS * (one_too_many - len(firsts)) - 1

    def _room(self, sequence: Sequence) -> int:
        """How many tokens the sequence can take without a new block."""
        room = len(sequence.blocks) * BLOCK_TOKENS - sequence.length
        return 0 if room and self._is_shared(sequence.blocks[len(sequence.blocks) - 1]) else room

    def _num_missing(self, write: Write) -> int:
        new = max(0, num_blocks(write.end) - len(write.sequence.blocks))
        return new + len(self._shared(write))

    def _shared(self, write: Write) -> list[int]:
        """Places of the blocks that are written and have other owners, too."""
        blocks = write.sequence.blocks
        last = min(num_blocks(write.end), len(blocks))
        return [index for index in range(write.begin // BLOCK_TOKENS, last) if self._is_shared(blocks[index])]

    def _is_shared(self, block: int) -> bool:
        return self._num_owners[block] > 1

    def _make_own(self, write: Write, index: int) -> None:
        """Another block in place of a shared one, which may have become the sequence's own in the meantime."""
        shared = write.sequence.blocks[index]
        if not self._is_shared(shared):
            return
        own = self._take()
        if index * BLOCK_TOKENS < write.begin:
            self._cache.copy(shared, own)
        write.sequence.blocks.replace(index, own)
        self._release(shared)

    def _take(self) -> int:
        block = heapq.heappop(self._free)
        self._num_owners[block] = 1
        return block

    def _release(self, block: int) -> None:
        self._num_owners[block] -= 1
        if self._num_owners[block] == 0:
            self._cache.discard(block)
            heapq.heappush(self._free, block)


def num_blocks(num_tokens: int) -> int:
    """How many blocks so many tokens take."""
    return -(-num_tokens // BLOCK_TOKENS)
