"""Growth: text that is being written, piece by piece, and how its pieces become events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kaiwa.apps.protocol.events import Event

_MERGED = ('{"type":"text_added"', '{"type":"step_text"')
_REPLACED = '{"type":"step_progress"'


def num_utf16_units(text: str) -> int:
    """A text's length as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class Growth:
    """One text that grows. `make_event` takes where a piece begins, in UTF-16 units, and the piece."""

    def __init__(self, make_event: Callable[[int, str], Event], *, so_far: str = "") -> None:
        self._make_event = make_event
        self._num_units = num_utf16_units(so_far)

    def event(self, text: str) -> Event:
        """The event for the next piece."""
        start = self._num_units
        self._num_units += num_utf16_units(text)
        return self._make_event(start, text)


@dataclass(frozen=True, slots=True)
class Piece:
    """What was added to a text since the last event."""

    growth: Growth
    texts: list[str]

    def event(self) -> Event:
        """All of it as one event."""
        return self.growth.event("".join(self.texts))


def coalesce(bodies: Sequence[str]) -> list[str]:
    """The same events with neighbouring pieces of one text joined, and only the last of neighbouring progress."""
    joined: list[str] = []
    open_text: dict[str, Any] | None = None
    for body in bodies:
        piece = json.loads(body) if body.startswith(_MERGED) else None
        if piece is not None and open_text is not None and _target(piece) == _target(open_text):
            open_text["text"] += piece["text"]
            continue
        if open_text is not None:
            joined.append(_dump(open_text))
        open_text = piece
        if piece is None:
            if joined and _is_replaced(joined[-1], body):
                joined.pop()
            joined.append(body)
    return joined if open_text is None else [*joined, _dump(open_text)]


def _target(piece: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in piece.items() if key not in ("start", "text")}


def _is_replaced(body: str, later: str) -> bool:
    if not (body.startswith(_REPLACED) and later.startswith(_REPLACED)):
        return False
    return bool(json.loads(body)["step_id"] == json.loads(later)["step_id"])


def _dump(piece: dict[str, Any]) -> str:
    return json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
