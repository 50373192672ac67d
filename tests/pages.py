"""Pages of the documentation: their code blocks, and the tables that are made from the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def code_blocks(page: Path, language: str) -> list[str]:
    """The text of all fenced blocks in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def check_table(page: Path, name: str, table: str, *, rewrite: bool) -> None:
    """Compare the part between `<!-- table: name -->` and `<!-- end -->` with what it should be, or write it anew."""
    text = page.read_text(encoding="utf-8")
    begin = f"<!-- table: {name} -->\n"
    before, found, rest = text.partition(begin)
    assert found, f"{page.name} has no table {name}"
    drawn, end, after = rest.partition("<!-- end -->")
    if rewrite:
        page.write_text(before + begin + table + end + after, encoding="utf-8")
    else:
        assert drawn == table, f"the table {name} in {page.name} is out of date: make test ARGS=--rewrite"
