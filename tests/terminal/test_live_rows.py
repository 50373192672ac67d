"""Rows that change at the bottom of a terminal: the screen always shows what it should."""

from __future__ import annotations

import io

import pyte
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.terminal.live_rows import LiveRows

COLUMNS, ROWS = 20, 8
row = st.text("ab é日🎉", max_size=8).map(str.rstrip)
updates = st.lists(st.tuples(st.lists(row, max_size=4), st.lists(row, max_size=ROWS - 1)), max_size=12)


class Terminal:
    """A screen that shows what is written to `file`."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000, ratio=0.5)
        self._stream = pyte.Stream(self.screen)

    def rows(self) -> list[str]:
        """All rows, also those that scrolled away, without empty ones at the end."""
        self._stream.feed(self.file.getvalue().replace("\n", "\r\n"))
        self.file.seek(0)
        self.file.truncate()
        above = ["".join(line[column].data for column in range(COLUMNS)) for line in self.screen.history.top]
        return without_empty_end([line.rstrip() for line in [*above, *self.screen.display]])


def without_empty_end(rows: list[str]) -> list[str]:
    while rows and not rows[-1]:
        rows = rows[:-1]
    return rows


@given(updates)
def test_the_screen_shows_the_finished_rows_and_below_them_the_live_ones(
    steps: list[tuple[list[str], list[str]]],
) -> None:
    terminal = Terminal()
    finished: list[str] = []
    live_rows = LiveRows(terminal.file)
    for kept, live in steps:
        live_rows.update(kept, live)
        finished += kept
        assert terminal.rows() == without_empty_end([*finished, *live])


@given(updates)
def test_where_the_cursor_cannot_move_the_finished_rows_are_written_once(
    steps: list[tuple[list[str], list[str]]],
) -> None:
    file = io.StringIO()
    with LiveRows(file, can_move=False) as live_rows:
        for kept, live in steps:
            live_rows.update(kept, live)
    assert file.getvalue() == "".join(f"{line}\n" for kept, _ in steps for line in kept)


def test_only_what_changed_is_written() -> None:
    file = io.StringIO()
    live_rows = LiveRows(file)
    live_rows.update([], ["one", "two", "thr"])
    before = len(file.getvalue())
    live_rows.update([], ["one", "two", "three"])
    assert file.getvalue()[before:] == "ee"
    live_rows.update(["one"], ["two", "three"])
    assert file.getvalue()[before:] == "ee"


def test_the_cursor_comes_back() -> None:
    file = io.StringIO()
    with LiveRows(file) as live_rows:
        live_rows.update([], ["waiting"])
    assert file.getvalue().startswith("\x1b[?25l")
    assert file.getvalue().endswith("\x1b[?25h")
