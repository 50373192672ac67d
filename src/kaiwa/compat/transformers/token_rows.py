"""Token ids in rows, as tensors are used for them: without torch, and made of lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from kaiwa.errors import InvalidOption


class TokenRows(list[list[int]]):
    """A list of rows of token ids, with what code does to a tensor of them: `shape`, `to(device)`, `tolist()`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and tokens of the longest one."""
        return len(self), max(map(len, self), default=0)

    def to(self, *device: object, **options: object) -> Self:
        """Itself: it is where it is needed already."""
        return self

    def tolist(self) -> list[list[int]]:
        """Plain lists."""
        return [list(row) for row in self]


def rows_of(value: Any, *, name: str = "input_ids") -> TokenRows:
    """Rows out of a tensor, an array, a list of rows or a single row. Raises `InvalidOption` for anything else."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and value and all(isinstance(item, int) for item in value):
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(_is_row(row) for row in value):
        raise InvalidOption(f"{name}={value!r:.100} is impossible", hint=f"{name} holds token ids: a row, or rows")
    return TokenRows(list(row) for row in value)


def padded(rows: Iterable[Sequence[int]], pad_id: int, *, on_the_left: bool = False) -> TokenRows:
    """Rows of one length."""
    lists = [list(row) for row in rows]
    length = max(map(len, lists), default=0)
    pads = [[pad_id] * (length - len(row)) for row in lists]
    return TokenRows(pad + row if on_the_left else row + pad for pad, row in zip(pads, lists, strict=True))


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, int) for item in value)
