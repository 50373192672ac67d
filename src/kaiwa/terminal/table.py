"""Plain tables for people: columns of text, side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(columns: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> list[str]:
    """Rows of text, made of columns of one length; those at the places `left` begin alike, the others end alike."""
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return [
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
