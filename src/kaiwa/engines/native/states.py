"""Which states of recurrent layers belong to which sequence, and the few older ones that are kept to go back to.

A state is what such layers remember of all tokens so far. No token can be taken out of it, so a sequence goes back to
a checkpoint or to its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass

from kaiwa.engines.native._native import StateCache
from kaiwa.engines.native.kv_cache import Sequence
from kaiwa.errors import OutOfMemory

CHECKPOINT_MARGIN = 16
"""Tokens before a prompt's end: the next prompt often differs in how the answer was asked to begin."""

NO_SLOT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The state of `sequence` after `length` tokens."""

    sequence: Sequence
    length: int
    slot: int


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The slots that a slice works with: its state, and where a copy goes after `checkpoint_tokens` of its tokens."""

    state: int = NO_SLOT
    checkpoint: int = NO_SLOT
    checkpoint_tokens: int = 0

    def cut(self, num_tokens: int) -> tuple[StatePlan, StatePlan]:
        """What becomes of it where the slice is cut in two after so many tokens."""
        none = StatePlan(self.state)
        if self.checkpoint_tokens <= num_tokens:
            return self, none
        return none, StatePlan(self.state, self.checkpoint, self.checkpoint_tokens - num_tokens)


class StatePool:
    """Hands out slots of a state cache: one for each of `max_sequences`, and as many for checkpoints.

    Without recurrent layers there are none, and every sequence can be cut anywhere.
    """

    def __init__(self, layer_sizes: Tokens[int], *, max_sequences: int) -> None:
        self.has_layers = len(layer_sizes) > 0
        self._max_sequences = self._max_checkpoints = max_sequences
        self.cache = StateCache(layer_sizes, 2 * max_sequences if self.has_layers else 0)
        self._free = list(range(self.cache.num_slots - 1, -1, -1))
        self._checkpoints: list[Checkpoint] = []
        """The oldest first."""

    def plan(self, sequence: Sequence, num_tokens: int) -> StatePlan:
        """Slots for the sequence's next tokens, with a checkpoint where one is due. Raises `OutOfMemory`."""
        if not self.has_layers:
            return StatePlan()
        self._begin(sequence)
        self._drop(sequence, sequence.length)  # of a step that failed
        due = sequence.num_prompt_tokens - CHECKPOINT_MARGIN
        if sequence.length < due <= sequence.length + num_tokens and self._make_room():
            checkpoint = Checkpoint(sequence, due, self._free.pop())
            self._checkpoints.append(checkpoint)
            return StatePlan(sequence.state, checkpoint.slot, due - sequence.length)
        return StatePlan(sequence.state)

    def keepable(self, sequence: Sequence, length: int) -> int:
        """How many of the sequence's first `length` tokens can stay when the rest goes."""
        if not self.has_layers or length >= sequence.length:
            return min(length, sequence.length)
        return max((kept.length for kept in self._checkpoints_of(sequence) if kept.length <= length), default=0)

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Go back to `length` tokens, which must be `keepable`."""
        if not self.has_layers or length == sequence.length:
            return
        for kept in self._checkpoints_of(sequence):
            if kept.length == length:
                self.cache.copy(kept.slot, sequence.state)
        self._drop(sequence, length)

    def close(self, sequence: Sequence) -> None:
        """Take back the sequence's state and checkpoints, and their memory."""
        self._drop(sequence, -1)
        if sequence.state != NO_SLOT:
            self._give_back(sequence.state)
            sequence.state = NO_SLOT

    def fork(self, sequence: Sequence, length: int, twin: Sequence) -> None:
        """Begin the `twin` with a copy of what the sequence remembers of `length` tokens, which must be `keepable`."""
        if not self.has_layers or length == 0:
            return
        self._begin(twin)
        at_length = (kept.slot for kept in self._checkpoints_of(sequence) if kept.length == length)
        self.cache.copy(sequence.state if length == sequence.length else next(at_length), twin.state)

    def contents(self, sequence: Sequence) -> list[tuple[int, bytes]]:
        """What is remembered of the sequence: lengths, and the states after them. The last one is its own."""
        if sequence.state == NO_SLOT:
            return []
        older = [(kept.length, kept.slot) for kept in self._checkpoints_of(sequence) if kept.length < sequence.length]
        return [(length, self.cache.read(slot)) for length, slot in (*older, (sequence.length, sequence.state))]

    def fill(self, sequence: Sequence, saved: Tokens[tuple[int, bytes | memoryview]]) -> None:
        """Let the new sequence remember what `contents` said of another. Raises `OutOfMemory`."""
        if not saved:
            return
        self._begin(sequence)
        *older, (_, own) = saved
        self.cache.write(sequence.state, own)
        for length, state in older:
            if self._make_room():
                self._checkpoints.append(Checkpoint(sequence, length, self._free.pop()))
                self.cache.write(self._checkpoints[-1].slot, state)

    def _begin(self, sequence: Sequence) -> None:
        if sequence.state != NO_SLOT:
            return
        if len(self._free) == self._max_checkpoints - len(self._checkpoints):
            raise OutOfMemory(
                f"all {self._max_sequences} states of recurrent layers are in use", hint="close another sequence first"
            )
        sequence.state = self._free.pop()

    def _checkpoints_of(self, sequence: Sequence) -> list[Checkpoint]:
        return [kept for kept in self._checkpoints if kept.sequence is sequence]

    def _make_room(self) -> bool:
        """Whether there is a slot for one more checkpoint, if need be the oldest one's."""
        if len(self._checkpoints) < self._max_checkpoints:
            return True
        # One beyond its sequence's end is about to be written by the same step.
        oldest = next((kept for kept in self._checkpoints if kept.length <= kept.sequence.length), None)
        if oldest is not None:
            self._forget(oldest)
        return oldest is not None

    def _drop(self, sequence: Sequence, length: int) -> None:
        for kept in self._checkpoints_of(sequence):
            if kept.length > length:
                self._forget(kept)

    def _forget(self, checkpoint: Checkpoint) -> None:
        self._checkpoints.remove(checkpoint)
        self._give_back(checkpoint.slot)

    def _give_back(self, slot: int) -> None:
        self.cache.discard(slot)
        self._free.append(slot)
