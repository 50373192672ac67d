"""Which sequences a step computes in one forward of the model, and as which rows of its input.

A row holds its sequence without a gap, and ends in the last column: what precedes it is padding. So distances between
tokens are what they are alone, however a model looks at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kaiwa.engines.torch.memory import Memory

FREE_PADDING = 4096
"""Columns of padding that a forward may have for nothing; beyond that, half of its columns are tokens."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is computed of a sequence: `token_ids`, after those in its memory.

    `known_ids` are the tokens in the memory, `num_logits` is after how many of the last ones logits are wanted, and
    `is_long` says by which of longrope's angles all are turned, which is one for a whole forward.
    """

    sequence: int
    memory: Memory
    known_ids: Sequence[int]
    token_ids: Sequence[int]
    num_logits: int = 1
    is_long: bool = False

    @property
    def length(self) -> int:
        """Tokens of the sequence, when they are computed."""
        return self.memory.length + len(self.token_ids)

    def widened(self, width: int) -> Row:
        """The row with up to `width` tokens to compute: some of those in the memory are computed once more."""
        kept = max(self.length - width, 0)
        if kept >= self.memory.length:
            return self
        again = self.known_ids[kept : self.memory.length]
        return replace(self, memory=self.memory.cut(kept), token_ids=[*again, *self.token_ids])


def forwards(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each forward. Those of one are about as long, so that padding costs less than another forward."""
    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.is_long, len(row.token_ids) > 1, -len(row.token_ids), -row.length)):
        if groups and _fits(row, groups[-1]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return [_aligned(group) for group in groups]


def _fits(row: Row, group: Sequence[Row]) -> bool:
    first, more = group[0], [*group, row]
    narrow, wide = len(row.token_ids), len(first.token_ids)
    if row.is_long != first.is_long or (narrow == 1) != (wide == 1) or 2 * narrow < wide:
        return False
    num_columns = max(other.length for other in more) * len(more)
    return num_columns <= 2 * sum(other.length for other in more) + FREE_PADDING


def _aligned(group: Sequence[Row]) -> list[Row]:
    """Rows with as many tokens to compute as the widest one, in the order in which they may be in memory already."""
    width = max(len(row.token_ids) for row in group)
    return sorted((row.widened(width) for row in group), key=lambda row: row.memory.row)
