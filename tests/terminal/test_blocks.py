"""Markdown in pieces: blocks end where Markdown says so, however the text arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kaiwa.terminal.blocks import Block, BlockKind, BlockStream

TEXT, ITEM, CODE_LINE, CODE_END = BlockKind.TEXT, BlockKind.ITEM, BlockKind.CODE_LINE, BlockKind.CODE_END
# fmt: off
LINES = ["", "", "words and more", "# Title", "- item", "  - inner", "   more", "1. one", "2) two", "```python", "```",
         "    indented", "~~~", "  ```", "| a | b |", "|---|---|", "> quote", "---", "* * *", "1990. was a year", "`x`"]
# fmt: on
markdown = st.lists(st.sampled_from(LINES), max_size=25).map("\n".join)


def blocks_of(*pieces: str) -> list[Block]:
    """All blocks of a text that arrives in these pieces."""
    stream = BlockStream()
    return [block for piece in pieces for block in stream.feed(piece)] + stream.finish()


def told(text: str) -> list[tuple[BlockKind, str]]:
    """Kinds and texts of the blocks."""
    return [(block.kind, block.text) for block in blocks_of(text)]


def test_a_blank_line_ends_a_paragraph() -> None:
    stream = BlockStream()
    assert stream.feed("one\ntwo") == []
    assert stream.tail == Block(TEXT, "one\ntwo")
    assert stream.feed("\n\nthr") == [Block(TEXT, "one\ntwo")]
    assert stream.tail == Block(TEXT, "thr")


def test_each_item_of_a_list_is_a_block_with_what_belongs_to_it() -> None:
    text = "First:\n- a\n  more\n\n  - inner\n- b\n\nafter"
    assert told(text) == [(TEXT, "First:"), (ITEM, "- a\n  more\n\n  - inner"), (ITEM, "- b"), (TEXT, "after")]


def test_code_comes_line_by_line() -> None:
    stream = BlockStream()
    assert stream.feed("Look:\n```py\nx = 1\n") == [Block(TEXT, "Look:"), Block(CODE_LINE, "x = 1", "py", 0)]
    assert stream.feed("# no title\n``") == [Block(CODE_LINE, "# no title", "py", 1)]
    assert stream.feed("`\n") == [Block(CODE_END, "", "py")]


def test_a_code_block_inside_an_item_is_not_cut() -> None:
    text = "1. Do\n\n   ```\n- not an item\n\n   ```\n2. Then"
    assert told(text) == [(ITEM, "1. Do\n\n   ```\n- not an item\n\n   ```"), (ITEM, "2. Then")]


def test_a_heading_needs_no_blank_lines() -> None:
    assert told("a\n# B\nc") == [(TEXT, "a"), (TEXT, "# B"), (TEXT, "c")]


def test_a_year_at_the_start_of_a_line_is_no_list() -> None:
    assert told("It was in\n1990. Or later.") == [(TEXT, "It was in\n1990. Or later.")]


def test_rules_are_no_items() -> None:
    assert told("* * *\n- - -") == [(TEXT, "* * *"), (TEXT, "- - -")]


def test_code_without_an_end_ends_with_the_text() -> None:
    assert told("```\nx") == [(CODE_LINE, "x"), (CODE_END, "")]


@given(markdown, st.data())
def test_any_pieces_give_the_same_blocks(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert blocks_of(*pieces) == blocks_of(text)


@given(markdown)
def test_no_word_is_lost(text: str) -> None:
    fences = ("```", "~~~")
    words = [word for line in text.split("\n") for word in line.split() if not word.startswith(fences)]
    kept = [word for block in blocks_of(text) for word in block.text.split() if not word.startswith(fences)]
    assert kept == words


@given(markdown)
def test_the_tail_is_what_the_next_blocks_begin_with(text: str) -> None:
    stream = BlockStream()
    stream.feed(text)
    tail = stream.tail
    rest = stream.finish()
    if tail is not None and tail.kind is not CODE_LINE:
        assert rest[0].text.startswith(tail.text.split("\n")[0])
