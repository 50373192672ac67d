"""How Markdown looks in a terminal: blocks in, rows of coloured text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, HorizontalRule, Markdown, MarkdownElement
from rich.segment import Segment, Segments
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text

from kaiwa.terminal.blocks import Block, BlockKind

CODE_THEME = "ansi_dark"
CONTEXT_LINES = 30
"""How many lines above are read at most to colour a line of code."""
RULE_WIDTH = 40
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


class _PlainHeading(Heading):
    """A heading that stays at the left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _PlainRule(HorizontalRule):
    """A line between two parts."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _rule("", min(RULE_WIDTH, options.max_width))


class _ChatMarkdown(Markdown):
    """Markdown as people write it in a chat: a new line is a new line, and `<tags>` are text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "hr": _PlainRule,
    }

    def __init__(self, markup: str, style: str) -> None:
        super().__init__("", code_theme=CODE_THEME, style=style, hyperlinks=False)
        self.markup = markup
        self.parsed = list(_with_line_ends(_PARSER.parse(markup)))


def _with_line_ends(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
        yield token


class BlockRows:
    """Renders the blocks of one answer. `style` lies under everything, e.g. "dim"."""

    def __init__(self, console: Console, *, style: str = "none") -> None:
        self._console = console
        self._style = style
        self._code: list[str] = []
        self._before: BlockKind | None = None

    def keep(self, block: Block) -> list[str]:
        """The rows of a block that is whole, with what sets it apart from the one before."""
        rows = self.rows(block)
        if block.kind is BlockKind.CODE_LINE:
            self._code = [*self._context(block), block.text]
        self._before = block.kind
        return rows

    def rows(self, block: Block) -> list[str]:
        """The rows of a block that may still change."""
        if block.kind is BlockKind.CODE_END:
            return render_rows(self._console, _rule("", self._width))
        gap = [""] if self._has_gap(block) else []
        if block.kind is BlockKind.CODE_LINE:
            label = render_rows(self._console, _rule(block.language, self._width)) if block.number == 0 else []
            return gap + label + self._code_rows(block)
        return gap + _without_outer_gaps(render_rows(self._console, _ChatMarkdown(block.text, self._style)))

    @property
    def _width(self) -> int:
        return min(RULE_WIDTH, self._console.width)

    def _has_gap(self, block: Block) -> bool:
        if self._before is None or (block.kind is BlockKind.CODE_LINE and block.number > 0):
            return False
        return not (block.kind is BlockKind.ITEM and self._before is BlockKind.ITEM)

    def _code_rows(self, block: Block) -> list[str]:
        line = _highlighted([*self._context(block), block.text], block.language)
        line.expand_tabs(4)
        segments = list(line.render(self._console))
        width = self._console.width
        cuts = range(width, Segment.get_line_length(segments) + width, width)
        return _painted(self._console, Segment.divide(segments, cuts)) or [""]

    def _context(self, block: Block) -> list[str]:
        """The lines above that decide the colours of this one: those since a definition began at the left edge."""
        is_fresh = block.text[:1].strip() and self._code and not self._code[-1].strip()
        return [] if block.number == 0 or is_fresh else self._code[-CONTEXT_LINES:]


def _highlighted(lines: list[str], language: str) -> Text:
    """The last of the lines of code, in colour."""
    code = "\n".join(lines)
    syntax = Syntax(code, language or "text", theme=CODE_THEME)
    return syntax.highlight(code).split("\n", allow_blank=True)[len(lines) - 1]


def _rule(label: str, width: int) -> Text:
    line = f"── {label} " if label else ""
    return Text(line.ljust(width, "─")[:width], style="dim")


def _without_outer_gaps(rows: list[str]) -> list[str]:
    filled = [index for index, row in enumerate(rows) if row]
    return rows[filled[0] : filled[-1] + 1] if filled else []


def render_rows(console: Console, renderable: RenderableType) -> list[str]:
    """What a renderable looks like, a string for each row of the screen, without spaces at the end."""
    return _painted(console, console.render_lines(renderable, pad=False))


def _painted(console: Console, rows: Iterable[list[Segment]]) -> list[str]:
    segments = [segment for row in rows for segment in (*_trimmed(row), Segment.line())]
    with console.capture() as captured:
        console.print(Segments(segments[:-1]), end="")
    return captured.get().split("\n")


def _trimmed(row: list[Segment]) -> list[Segment]:
    while row and not row[-1].text.rstrip() and not _shows_on_spaces(row[-1].style):
        row = row[:-1]
    if row and not _shows_on_spaces(row[-1].style):
        row = [*row[:-1], Segment(row[-1].text.rstrip(), row[-1].style)]
    return row


def _shows_on_spaces(style: Style | None) -> bool:
    return bool(style and (style.bgcolor or style.underline or style.reverse))
