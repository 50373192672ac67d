"""The page is written against the protocol as it is."""

from __future__ import annotations

from pathlib import Path

from kaiwa.apps.protocol.typescript import typescript

TYPES = Path(__file__).parents[2] / "web" / "src" / "protocol.ts"


def test_the_types_of_the_page_are_current(rewrite: bool) -> None:
    if rewrite:
        TYPES.write_text(typescript(), encoding="utf-8")
    assert TYPES.read_text(encoding="utf-8") == typescript(), "pytest tests/page/test_protocol.py --rewrite"
