"""What a transformers model remembers of sequences: keys and values, or a state where layers have one.

Sequences that are computed together have rows in one block, and their last tokens in its last column. Columns are only
ever added to a block: so sequences that begin alike may share a row, and cutting one short leaves the others alone.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kaiwa.errors import UnusableFile

_GROWING = ("DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer")


def is_recurrent(transformers: Any, config: Any) -> bool:
    """Whether a model has layers that remember a sequence as one state, which cannot be taken back."""
    layers = transformers.DynamicCache(config=config).layers
    return any(type(layer).__name__ not in _GROWING for layer in layers)


@dataclass(slots=True, eq=False)
class Block:
    """A cache of transformers that has `num_columns` tokens of each of `num_rows` sequences."""

    cache: Any
    num_rows: int = 1
    num_columns: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one sequence: `length` columns of a row of a block, from the column `start` on."""

    block: Block
    row: int = 0
    start: int = 0
    length: int = 0

    def cut(self, length: int) -> Memory:
        """That of the first tokens only."""
        return replace(self, length=length)

    def twin(self) -> Memory:
        """A copy of all of it, for layers with a state."""
        return replace(self, block=Block(copy.deepcopy(self.block.cache), num_columns=self.block.num_columns))

    def tensors(self) -> list[tuple[Any, Any] | None]:
        """Keys and values of each layer, of shape (heads, length, size); None for layers that have none."""
        if not self.length:
            return []
        columns = slice(self.start, self.start + self.length)
        return [
            (layer.keys[self.row, :, columns], layer.values[self.row, :, columns]) if layer.is_initialized else None
            for layer in self.block.cache.layers
        ]


class Memories:
    """Makes memories for one model."""

    def __init__(self, torch: Any, transformers: Any, config: Any) -> None:
        self._torch = torch
        self._transformers = transformers
        self._config = config
        self.are_recurrent = is_recurrent(transformers, config)

    def empty(self) -> Memory:
        """That of an empty sequence. Windows are masked, not forgotten, so that it can go back to any length."""
        return Memory(Block(self._cache()))

    def block_of(self, memories: Sequence[Memory]) -> Block:
        """A block whose rows are the memories, in this order: the one that they are in, or a copy of theirs."""
        block = memories[0].block
        if block.num_rows == len(memories) and all(
            memory.block is block and memory.row == row and memory.start + memory.length == block.num_columns
            for row, memory in enumerate(memories)
        ):
            return block
        rows = [memory.tensors() for memory in memories]
        cache, num_columns = self._cache(), max(memory.length for memory in memories)
        for index in range(max(map(len, rows))):
            pairs = [layers[index] if layers else None for layers in rows]
            if any(pairs):
                keys, values = (_stacked([pair and pair[side] for pair in pairs], num_columns) for side in (0, 1))
                cache.update(keys, values, index)
        return Block(cache, len(memories), num_columns)

    def alone(self, memory: Memory) -> Memory:
        """The same in a block of its own."""
        return Memory(self.block_of([memory]), length=memory.length)

    def pack(self, memory: Memory, **more: Any) -> bytes:
        """All of a memory as bytes, with `more` beside it."""
        if self.are_recurrent:
            layers = [vars(layer) for layer in memory.block.cache.layers]
        else:  # cloned, as torch would write all of what a part is taken from
            layers = [
                {} if pair is None else {"keys": pair[0][None].clone(), "values": pair[1][None].clone()}
                for pair in memory.tensors()
            ]
        buffer = io.BytesIO()
        self._torch.save({**more, "length": memory.length, "layers": layers}, buffer)
        return buffer.getvalue()

    def unpack(self, saved: bytes, *, fingerprint: str, device: Any) -> tuple[Memory, Mapping[str, Any]]:
        """What `pack` gave, and what was beside it. Raises `UnusableFile` where it is damaged, or of another model."""
        try:
            content: Mapping[str, Any] = self._torch.load(io.BytesIO(saved), map_location=device, weights_only=True)
            found, length, layers = content["fingerprint"], int(content["length"]), content["layers"]
        except Exception as error:  # torch raises anything for damaged bytes
            raise UnusableFile("the saved sequence", "sequence", f"it is damaged: {error}") from error
        if found != fingerprint:
            raise UnusableFile("the saved sequence", "sequence", "it is of another model, or of other options")
        cache = self._cache()
        for index, layer in enumerate(layers):
            if self.are_recurrent:
                for name, value in layer.items():
                    setattr(cache.layers[index], name, value)
            elif layer:
                cache.update(layer["keys"], layer["values"], index)
        return Memory(Block(cache, num_columns=length), length=length), content

    def _cache(self) -> Any:
        new = self._transformers.DynamicCache
        return new(config=self._config) if self.are_recurrent else new()


def _stacked(parts: Sequence[Any], num_columns: int) -> Any:
    """Parts of different lengths as rows that end in the same column; zeros where there is none."""
    some = next(part for part in parts if part is not None)
    stacked = some.new_zeros(len(parts), some.shape[0], num_columns, some.shape[-1])
    for row, part in zip(stacked, parts, strict=True):
        if part is not None:
            row[:, num_columns - part.shape[-2] :] = part
    return stacked
