"""Rows at the bottom of a terminal that may still change, and those above that are there for good."""

from __future__ import annotations

from typing import IO, Self

_HIDE_CURSOR = "\x1b[?25l"
_SHOW_CURSOR = "\x1b[?25h"
_ERASE_BELOW = "\x1b[J"


class LiveRows:
    """Writes only what differs from what is already on the screen.

    A row is a line of text with its colours, no wider than the screen. Where the terminal cannot move its cursor
    (`can_move` is False), only rows that are there for good are written.
    """

    def __init__(self, file: IO[str], *, can_move: bool = True) -> None:
        self._file = file
        self._can_move = can_move
        self._rows = [""]

    def __enter__(self) -> Self:
        if self._can_move:
            self._file.write(_HIDE_CURSOR)
        return self

    def __exit__(self, *_: object) -> None:
        self.update([], [])
        if self._can_move:
            self._file.write(_SHOW_CURSOR)
        self._file.flush()

    def update(self, finished: list[str], live: list[str]) -> None:
        """Put `finished` rows down for good in place of the rows that were live, then `live` ones below them."""
        if not self._can_move:
            live = []
        wanted = [*finished, *(live or [""])]
        first = _first_difference(self._rows, wanted)
        if first is not None:
            self._file.write(self._redrawn(wanted, first))
            self._file.flush()
        self._rows = live or [""]

    def _redrawn(self, wanted: list[str], first: int) -> str:
        last = len(self._rows) - 1
        if first == last and first < len(wanted) and self._rows[last] and wanted[first].startswith(self._rows[last]):
            return "\n".join([wanted[first][len(self._rows[last]) :], *wanted[first + 1 :]])
        if first > last:
            return "".join("\n" + row for row in wanted[first:])
        if not self._can_move:
            return "\n".join(wanted[first:])
        up = f"\x1b[{last - first}A" if last > first else ""
        return f"{up}\r{_ERASE_BELOW}" + "\n".join(wanted[first:])


def _first_difference(old: list[str], new: list[str]) -> int | None:
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return index
    if len(old) == len(new):
        return None
    return len(old) if len(new) > len(old) else len(new) - 1
