"""An answer on the screen, while it is being written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from kaiwa.terminal.blocks import BlockStream
from kaiwa.terminal.live_rows import LiveRows
from kaiwa.terminal.markdown import BlockRows, render_rows
from kaiwa.terminal.screen import Screen, visible

SHARE_OF_TIME = 0.1
"""Drawing takes at most this share of the time, however long the block that is being written has become."""
MIN_FRAME_S = 1 / 60


class AnswerView:
    """Shows Markdown as it arrives.

    Blocks that are whole are drawn once and stay; only the one being written is drawn again, and of it only the rows
    that fit on the screen: those above are there for good, but for those of a table, which wait until it is whole. The
    work for each piece of text therefore does not grow with the answer. Use it as a context; leaving it puts down what
    is left.
    """

    def __init__(self, screen: Screen, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._console = screen.console
        self._live = LiveRows(screen.console.file, can_move=screen.can_move)
        self._is_reasoning = False
        self._begin(style="none")
        self._next_frame = 0.0
        self.is_empty = True

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._finish_stream()
        self._live.__exit__(*details)

    def _begin(self, *, style: str) -> None:
        self._blocks = BlockStream()
        self._rows = BlockRows(self._console, style=style)
        self._kept_of_tail = 0

    def wait(self, text: str) -> None:
        """Say what is being done as long as there is nothing else to show."""
        if self.is_empty:
            self._live.update([], render_rows(self._console, f"[note]{text}[/note]"))

    def reasoning(self, text: str) -> None:
        """The next piece of what the model thinks."""
        self._switch(is_reasoning=True)
        self._feed(text)

    def text(self, text: str) -> None:
        """The next piece of the answer."""
        self._switch(is_reasoning=False)
        self._feed(text)

    def _switch(self, *, is_reasoning: bool) -> None:
        if self._is_reasoning == is_reasoning:
            return
        self._is_reasoning = is_reasoning
        if not self.is_empty:
            self._finish_stream()
            self._live.update([""], [])
        self._begin(style="note" if is_reasoning else "none")

    def _feed(self, text: str) -> None:
        if not text:
            return
        self.is_empty = False
        finished: list[str] = []
        for block in self._blocks.feed(visible(text)):
            finished += self._rows.keep(block)[self._kept_of_tail :]
            self._kept_of_tail = 0
        if finished or self._clock() >= self._next_frame:
            self._draw(finished)

    def _draw(self, finished: list[str]) -> None:
        started = self._clock()
        tail = self._blocks.tail
        live = self._rows.rows(tail)[self._kept_of_tail :] if tail else []
        above = max(0, len(live) - max(1, self._console.height - 1))
        if tail and not tail.has_columns:
            finished = finished + live[:above]
            self._kept_of_tail += above
        live = live[above:]
        self._live.update(finished, live)
        now = self._clock()
        self._next_frame = now + max(MIN_FRAME_S, (now - started) / SHARE_OF_TIME)

    def _finish_stream(self) -> None:
        finished: list[str] = []
        for block in self._blocks.finish():
            finished += self._rows.keep(block)[self._kept_of_tail :]
            self._kept_of_tail = 0
        self._live.update(finished, [])
