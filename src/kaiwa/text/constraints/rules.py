"""Rules of a grammar, written in llguidance's kind of Lark. They know what a tokenizer's special tokens are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

SPACING = r"(\n {0,32}| )?"
"""White space between the parts of JSON: what pretty printing needs, and nothing that could go on for ever."""

ANYTHING = r"/(?s:.*)/"
"""Any text. Special tokens are no part of it."""


class Rules:
    """A grammar in the making. `token_ids` are special tokens: a marker that is one of them is written by its id."""

    def __init__(self, token_ids: Mapping[str, int]) -> None:
        self._token_ids = token_ids
        self._pattern = re.compile(f"({'|'.join(map(re.escape, sorted(token_ids, key=len, reverse=True)))})")
        self._bodies: dict[str, str] = {}

    def is_token(self, marker: str) -> bool:
        """Whether a marker is a token of its own."""
        return marker in self._token_ids

    def first_token(self, text: str) -> int | None:
        """The special token that a text begins with, or None."""
        found = self._pattern.match(text) if self._token_ids else None
        return self._token_ids[found.group()] if found else None

    def text(self, text: str) -> str:
        """Exactly this text, with the special tokens that stand in it as such."""
        parts = self._pattern.split(text) if self._token_ids else [text]
        return " ".join(f"<[{self._token_ids[part]}]>" if self.is_token(part) else self.literal(part) for part in parts)

    def literal(self, text: str) -> str:
        """Exactly this text."""
        return json.dumps(text, ensure_ascii=False) if text else ""

    def json(self, schema: Any) -> str:
        """JSON that fits a schema."""
        if not isinstance(schema, Mapping):
            schema = {"allOf": [schema]}  # options have their place in an object only
        spaced = {**schema, "x-guidance": {"whitespace_pattern": SPACING}}
        return "%json " + json.dumps(spaced, ensure_ascii=False)

    def text_until(self, marker: str) -> str:
        """Any text, then a marker, which ends it wherever it comes."""
        if self.is_token(marker):
            return self.add(f"{ANYTHING} {self.text(marker)}")
        return self.add(ANYTHING, options=f"suffix={self.literal(marker)}")

    def either(self, bodies: Iterable[str]) -> str:
        """One of several."""
        return self.add("\n    | ".join(bodies))

    def add(self, body: str, *, options: str = "") -> str:
        """A rule of its own; its name."""
        name = f"rule_{len(self._bodies)}"
        self._bodies[name + (f"[{options}]" if options else "")] = body
        return name

    def grammar(self, start: str) -> str:
        """The whole grammar."""
        bodies = {"start": start, **self._bodies}
        return "".join(f"{name}: {body}\n" for name, body in bodies.items())
