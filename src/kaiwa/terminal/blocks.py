"""Markdown that arrives in pieces, cut into blocks that will not change any more.

It knows enough of Markdown to see where a block ends, and nothing of how one looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)])( +|$)")
_HEADING = re.compile(r" {0,3}#{1,6}( |$)")
_RULE = re.compile(r" {0,3}([-*_])( *\1){2,} *$")

_TABLE = re.compile(r"^[ :|-]*-[ :|-]*\|[ :|-]*$|^[ :-]*\|[ :|-]*-[ :|-]*$", re.MULTILINE)
_UNDECIDED = re.compile(r" *([-=*_`~#>+|]+ *|\d{1,9}[.)] *)$| {0,3}(```|~~~)")
"""The beginning of a line that may still become a fence, an underline, a rule or an item: too early to show."""


class BlockKind(Enum):
    """What a block is: how it is set apart from its neighbours follows from it."""

    TEXT = "text"
    ITEM = "item"
    CODE_LINE = "code line"
    CODE_END = "code end"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown that stands alone: a paragraph, heading or table; a list item; one line of code.

    `number` counts the lines of a code block from 0, `language` is what its fence says.
    """

    kind: BlockKind
    text: str
    language: str = ""
    number: int = 0

    @property
    def has_columns(self) -> bool:
        """Whether later lines can change the width of earlier ones: in a table they do."""
        return bool(_TABLE.search(self.text))


@dataclass(frozen=True, slots=True)
class _Fence:
    indent: int
    mark: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return len(stripped) >= len(self.mark) and not stripped.strip(self.mark[0]) and stripped != ""


class BlockStream:
    """Takes text as it comes and hands out each block once it is whole; the last one stays visible in `tail`."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._fence: _Fence | None = None
        self._code_lines = 0
        self._item_indent: int | None = None
        self._inner_fence: _Fence | None = None

    @property
    def tail(self) -> Block | None:
        """What may still change: the block being written, or None between blocks."""
        if self._fence is not None:
            return self._code_line(self._partial) if self._partial else None
        partial = "" if _UNDECIDED.match(self._partial) else self._partial
        text = "\n".join([*self._lines, partial])
        if not text.strip():
            return None
        return Block(BlockKind.TEXT if self._item_indent is None else BlockKind.ITEM, text.rstrip())

    def feed(self, text: str) -> list[Block]:
        """The blocks that became whole with this text."""
        *complete, self._partial = (self._partial + text).split("\n")
        blocks: list[Block] = []
        for line in complete:
            self._take(line, blocks)
        return blocks

    def finish(self) -> list[Block]:
        """The blocks that remain at the end of the text."""
        blocks: list[Block] = []
        if self._partial:
            line, self._partial = self._partial, ""
            self._take(line, blocks)
        if self._fence is not None:
            self._close_code(blocks)
        self._flush(blocks)
        return blocks

    def _take(self, line: str, blocks: list[Block]) -> None:
        if self._fence is not None:
            self._take_code(line, blocks)
        elif self._inner_fence is not None:
            if self._inner_fence.is_closed_by(line):
                self._inner_fence = None
            self._lines.append(line)
        elif self._item_indent is not None:
            self._take_in_item(line, blocks)
        else:
            self._take_text(line, blocks)

    def _take_code(self, line: str, blocks: list[Block]) -> None:
        assert self._fence is not None
        if self._fence.is_closed_by(line):
            self._close_code(blocks)
            return
        blocks.append(self._code_line(line))
        self._code_lines += 1

    def _code_line(self, line: str) -> Block:
        assert self._fence is not None
        indent = min(self._fence.indent, len(line) - len(line.lstrip(" ")))
        return Block(BlockKind.CODE_LINE, line[indent:], self._fence.language, self._code_lines)

    def _close_code(self, blocks: list[Block]) -> None:
        assert self._fence is not None
        if not self._code_lines:
            blocks.append(self._code_line(""))
        blocks.append(Block(BlockKind.CODE_END, "", self._fence.language))
        self._fence = None

    def _take_in_item(self, line: str, blocks: list[Block]) -> None:
        assert self._item_indent is not None
        indent = len(line) - len(line.lstrip(" "))
        follows_blank = not self._lines[-1].strip()
        if not line.strip() or indent > self._item_indent + 1:
            self._inner_fence = _fence_of(line.lstrip(" "), indent)
            self._lines.append(line)
        elif follows_blank or _starts_block(line):
            self._flush(blocks)
            self._take_text(line, blocks)
        else:
            self._lines.append(line)

    def _take_text(self, line: str, blocks: list[Block]) -> None:
        if not line.strip():
            self._flush(blocks)
        elif fence := _fence_of(line):
            self._flush(blocks)
            self._fence, self._code_lines = fence, 0
        elif _HEADING.match(line) or (_RULE.match(line) and not self._lines):
            self._flush(blocks)
            blocks.append(Block(BlockKind.TEXT, line))
        elif (item := _ITEM.match(line)) and not _RULE.match(line) and self._may_start_list(item):
            self._flush(blocks)
            self._item_indent = len(item[1])
            self._lines.append(line)
        else:
            self._lines.append(line)

    def _may_start_list(self, item: re.Match[str]) -> bool:
        """A number interrupts a paragraph only where a list begins: a year at the start of a line stays text."""
        if len(item[1]) > 3:
            return False
        return not self._lines or item[2] in ("-", "*", "+", "1.", "1)")

    def _flush(self, blocks: list[Block]) -> None:
        tail = Block(BlockKind.TEXT if self._item_indent is None else BlockKind.ITEM, "\n".join(self._lines).rstrip())
        if tail.text.strip():
            blocks.append(tail)
        self._lines = []
        self._item_indent = None
        self._inner_fence = None


def _fence_of(line: str, indent: int | None = None) -> _Fence | None:
    match = _FENCE.match(line)
    if not match:
        return None
    return _Fence(len(match[1]) if indent is None else indent, match[2], match[3])


def _starts_block(line: str) -> bool:
    return bool(_ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line) or _RULE.match(line))
