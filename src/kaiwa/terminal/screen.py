"""What the chat says on the screen beside the model's answers: notes, errors, tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from kaiwa.errors import KaiwaError

MOST_FOR_NAMES = 0.4
"""Of a row's width."""

THEME = Theme(
    {
        "name": "bold",
        "note": "dim",
        "wrong": "bold red",
        "good": "green",
        "command": "cyan",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold",
        "markdown.code": "cyan",
        "markdown.code_block": "cyan",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.hr": "dim",
        "markdown.link": "none",
        "markdown.link_url": "cyan",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


class Screen:
    """The terminal, in our colours. `console` is rich's own, for whoever draws rows."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.console = Console(file=file or sys.stdout, theme=THEME, highlight=False)

    @property
    def can_move(self) -> bool:
        """Whether the cursor can go back to rows that are already written."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def say(self, text: str = "", *, style: str = "none") -> None:
        """One plain paragraph."""
        self.console.print(Text(visible(text), style=style))

    def note(self, text: str) -> None:
        """Something to read only by those who look for it."""
        self.say(text, style="note")

    def error(self, error: KaiwaError) -> None:
        """What went wrong, and what to do about it, in the words of the command line."""
        self.console.print(Text.assemble(("error: ", "wrong"), visible(str(error))))
        if error.hint:
            self.console.print(Text.assemble(("hint: ", "note"), visible(error.hint)))

    def pairs(self, rows: Iterable[tuple[str, str | Text]], *, style: str = "note") -> None:
        """Names at the left in one column, what they stand for at the right, or below where there is no room beside."""
        shown = [(name, value if isinstance(value, Text) else Text(visible(value))) for name, value in rows]
        if max((cell_len(name) for name, _ in shown), default=0) > self.console.width * MOST_FOR_NAMES:
            for name, value in shown:
                self.console.print(Text(name, style=style), Padding(value, (0, 0, 0, 2)), sep="\n")
            return
        table = Table.grid(padding=(0, 2))
        table.add_column(style=style, no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in shown:
            table.add_row(Text(name), value)
        self.console.print(table)

    def clear(self) -> None:
        """An empty screen, where there is one."""
        if self.can_move:
            self.console.clear()


def visible(text: str) -> str:
    """Text that cannot steer a terminal: control characters, which nothing but an attack needs, become visible."""
    return text.translate(_VISIBLE)


_VISIBLE = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
