"""An answer on the screen: the same picture however it arrives, at a cost that does not grow with its length."""

from __future__ import annotations

import io
import itertools
import time

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from kaiwa.terminal.answer import AnswerView
from kaiwa.terminal.screen import THEME, Screen

ROWS = 12
WIDTH = 40
PIECES = [
    "word ",
    "**bold** ",
    "`code` ",
    "<div> ",
    "\n",
    "\n\n",
    "# ",
    "- ",
    "1. ",
    "> ",
    "日本語",
    "🎉",
    "long " * 30,
]
PIECES += ["```py\n", "```\n", "x = 1\n", "| a | b |\n|---|---|\n| 1 | 2 |\n"]


class TestScreen(Screen):
    """A screen of a known size that remembers what is written to it."""

    __test__ = False

    def __init__(self, width: int = WIDTH) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, theme=THEME, highlight=False, width=width, height=ROWS, force_terminal=True,
            color_system="standard", no_color=False, _environ={},
        )  # fmt: skip


def picture(pieces: list[str], width: int = WIDTH) -> list[str]:
    """All rows that a person has seen in the end."""
    screen = TestScreen(width)
    hours = itertools.count(step=3600)
    with AnswerView(screen, clock=lambda: next(hours)) as view:  # always time for another frame
        for piece in pieces:
            view.text(piece)
    return rows_of(screen.file.getvalue(), width)


def rows_of(written: str, width: int = WIDTH) -> list[str]:
    terminal = pyte.HistoryScreen(width, ROWS, history=10_000, ratio=0.5)
    pyte.Stream(terminal).feed(written.replace("\n", "\r\n"))
    above = ["".join(line[column].data for column in range(width)) for line in terminal.history.top]
    return [line.rstrip() for line in [*above, *terminal.display] if line.strip()]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_an_answer_in_pieces_looks_like_one_that_came_at_once(pieces: list[str]) -> None:
    assert picture(list("".join(pieces))) == picture(["".join(pieces)])


def test_a_list_taller_than_the_screen_is_shown_whole() -> None:
    text = "\n".join(f"{number}. item {number}" for number in range(1, 101))
    rows = picture([text[start : start + 3] for start in range(0, len(text), 3)])
    assert [row.split() for row in rows] == [[str(number), "item", str(number)] for number in range(1, 101)]


def test_a_paragraph_taller_than_the_screen_is_shown_whole() -> None:
    text = " ".join(f"w{number}" for number in range(400))
    assert " ".join(picture([text[start : start + 5] for start in range(0, len(text), 5)])) == text


def test_tags_and_line_ends_are_kept_as_the_model_wrote_them() -> None:
    assert picture(["Use <div> here\nand <b>there</b>."]) == ["Use <div> here", "and <b>there</b>."]


def test_code_is_in_colour_and_can_be_copied() -> None:
    screen = TestScreen()
    with AnswerView(screen) as view:
        view.text("```python\ndef f():\n    return 1\n```\n")
    assert rows_of(screen.file.getvalue())[1:3] == ["def f():", "    return 1"]
    assert "\x1b[94mdef\x1b[0m" in screen.file.getvalue()


def test_long_lines_of_code_break_at_the_edge_only() -> None:
    line = "x = " + " + ".join(f"name_{number}" for number in range(12))
    rows = picture(["```python\n", line, "\n```"])
    assert len(rows[1:-1]) == -(-len(line) // WIDTH)
    assert "".join(rows[1:-1]).replace(" ", "") == line.replace(" ", "")


def test_an_unknown_language_is_plain_text() -> None:
    assert picture(["```klingon\nnuqneH\n```"])[1] == "nuqneH"


def test_a_model_cannot_steer_the_terminal() -> None:
    screen = TestScreen()
    with AnswerView(screen) as view:
        view.text("a\x1b]0;title\x07b\x1b[2Jc\x9b31md\re")
    written = screen.file.getvalue()
    assert "\x1b]0" not in written
    assert "\x1b[2J" not in written
    assert "\x9b" not in written
    assert "\r" not in written.replace("\r\x1b[J", "")


def test_reasoning_is_set_apart_from_the_answer() -> None:
    screen = TestScreen()
    with AnswerView(screen) as view:
        view.reasoning("Let me think")
        view.text("It is **four**.")
    assert rows_of(screen.file.getvalue()) == ["Let me think", "It is four."]
    assert "\x1b[2mLet me think\x1b[0m" in screen.file.getvalue()


def test_waiting_leaves_no_trace() -> None:
    screen = TestScreen()
    with AnswerView(screen) as view:
        view.wait("reading 1 of 2 tokens")
        view.text("Hi")
    assert rows_of(screen.file.getvalue()) == ["Hi"]


def test_the_cost_of_a_piece_does_not_grow_with_the_answer() -> None:
    def once(paragraphs: int) -> float:
        text = "Some words **and** a `few` more of them, as a model says.\n\n" * paragraphs
        screen = TestScreen()
        started = time.process_time()
        with AnswerView(screen) as view:
            for start in range(0, len(text), 4):
                view.text(text[start : start + 4])
        return time.process_time() - started

    def seconds(paragraphs: int) -> float:
        return min(once(paragraphs) for _ in range(3))  # whatever else happens meanwhile only adds to it

    once(10)
    assert seconds(400) < 4 * 2.5 * seconds(100)
