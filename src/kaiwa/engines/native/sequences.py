"""All sequences of an engine, and the memory that they hold: blocks of the cache, and states of recurrent layers."""

from __future__ import annotations

from collections.abc import Collection

from kaiwa.engines.native.kv_cache import BlockPool, Write
from kaiwa.engines.native.kv_cache import Sequence as OneSequence
from kaiwa.engines.native.saved import Saved
from kaiwa.engines.native.states import StatePlan, StatePool
from kaiwa.errors import OutOfMemory


class Sequences:
    """Sequences by their handles, at most `max_sequences` at a time."""

    def __init__(self, blocks: BlockPool, states: StatePool, *, max_sequences: int) -> None:
        self._blocks = blocks
        self._states = states
        self._max_sequences = max_sequences
        self._by_handle: dict[int, OneSequence] = {}
        self._next_handle = 0

    def __getitem__(self, handle: int) -> OneSequence:
        return self._by_handle[handle]

    @property
    def num_free_tokens(self) -> int:
        """How many tokens surely find a place, however the sequences share them out."""
        return self._blocks.num_free_tokens(self._by_handle.values())

    def open(self) -> int:
        """A new one, empty. Raises `OutOfMemory`."""
        return self._add(self._new())

    def close(self, handle: int) -> None:
        """Give back what no other sequence shares."""
        self._give_back(self._by_handle.pop(handle))

    def keepable(self, handle: int, length: int) -> int:
        """How many of its first `length` tokens can stay when the rest goes."""
        return self._states.keepable(self._by_handle[handle], length)

    def truncate(self, handle: int, length: int) -> None:
        """Keep what is `keepable` of the first `length` tokens."""
        sequence = self._by_handle[handle]
        kept = self._states.keepable(sequence, length)
        self._states.truncate(sequence, kept)
        self._blocks.truncate(sequence, kept)

    def fork(self, handle: int, length: int) -> int:
        """A new one that begins with what is `keepable` of the first `length` tokens. Raises `OutOfMemory`."""
        source, twin = self._by_handle[handle], self._new()
        kept = self._states.keepable(source, length)
        self._states.fork(source, kept, twin)
        self._blocks.fork(source, kept, twin)
        twin.is_long, twin.token_ids = source.is_long, source.token_ids[:kept]
        return self._add(twin)

    def reserve(self, writes: Collection[Write]) -> list[StatePlan]:
        """Memory for all that a step writes, and the states that it works with. Raises `OutOfMemory` and takes none."""
        plans = [self._states.plan(write.sequence, write.end - write.sequence.length) for write in writes]
        self._blocks.reserve(writes)
        return plans

    def contents(self, handle: int) -> Saved:
        """All that is held of one."""
        kept = self._by_handle[handle]
        blocks, states = self._blocks.contents(kept), self._states.contents(kept)
        return Saved(kept.length, kept.is_long, kept.token_ids[: kept.length], blocks, states)

    def restore(self, saved: Saved) -> int:
        """A new one with these contents. Raises `OutOfMemory`."""
        sequence = self._new()
        sequence.is_long, sequence.token_ids = saved.is_long, list(saved.token_ids)
        try:
            self._blocks.fill(sequence, saved.length, saved.blocks)
            self._states.fill(sequence, saved.states)
        except OutOfMemory:
            self._give_back(sequence)
            raise
        return self._add(sequence)

    def _new(self) -> OneSequence:
        if len(self._by_handle) == self._max_sequences:
            raise OutOfMemory(f"all {self._max_sequences} sequences are in use", hint="close one of them first")
        return OneSequence(self._blocks.new_table())

    def _add(self, sequence: OneSequence) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._by_handle[handle] = sequence
        return handle

    def _give_back(self, sequence: OneSequence) -> None:
        self._states.close(sequence)
        self._blocks.truncate(sequence, 0)
