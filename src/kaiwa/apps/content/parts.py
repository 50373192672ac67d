"""Parts: what a message is made of while it is written, and the events of its growing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from kaiwa.apps.protocol.events import PartAdded, TextAdded
from kaiwa.apps.protocol.records import Part, ReasoningPart, TextPart, ToolCallPart
from kaiwa.apps.storage.growth import Growth


@dataclass(slots=True)
class _Open:
    """A text or a reasoning whose pieces are joined when somebody reads them."""

    kind: Literal["text", "reasoning"]
    growth: Growth
    pieces: list[str] = field(default_factory=list)
    started_at: float = 0.0
    ended_at: float | None = None

    def record(self) -> Part:
        text = "".join(self.pieces)
        self.pieces = [text]
        if self.kind == "text":
            return TextPart(text=text)
        return ReasoningPart(text=text, started_at=self.started_at, ended_at=self.ended_at)


class Parts:
    """The parts of one message, in order."""

    def __init__(self, message_id: str, text: str) -> None:
        self._message_id = message_id
        self._parts: list[_Open | ToolCallPart] = []
        self.set_text(text)

    @property
    def text(self) -> str:
        """What the message says: its text parts."""
        texts = [part for part in self._parts if isinstance(part, _Open) and part.kind == "text"]
        if len(texts) == 1 and len(texts[0].pieces) == 1:
            return texts[0].pieces[0]
        return "".join("".join(part.pieces) for part in texts)

    def set_text(self, text: str) -> None:
        """Say this, and nothing else."""
        self._parts = [self._open("text", 0, text)] if text else []

    def records(self) -> tuple[Part, ...]:
        """As pages know them."""
        return tuple(part.record() if isinstance(part, _Open) else part for part in self._parts)

    def grow(self, kind: Literal["text", "reasoning"], text: str) -> tuple[Growth, list[PartAdded]]:
        """Add to the last part if it is of this kind, or to a new one; what grows, and what is to be told before."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Open) and last.kind == kind:
            last.pieces.append(text)
            return last.growth, []
        index = len(self._parts)
        begun = self._open(kind, index, "")
        events = [*self._end_reasoning(), PartAdded(message_id=self._message_id, index=index, part=begun.record())]
        self._parts.append(begun)
        begun.pieces.append(text)
        return begun.growth, events

    def call(self, call: ToolCallPart) -> list[PartAdded]:
        """Add a tool's call, or its result where the call is there; what is to be told."""
        events = self._end_reasoning()
        for index, part in enumerate(self._parts):
            if isinstance(part, ToolCallPart) and part.id == call.id:
                self._parts[index] = call
                return [*events, PartAdded(message_id=self._message_id, index=index, part=call)]
        self._parts.append(call)
        return [*events, PartAdded(message_id=self._message_id, index=len(self._parts) - 1, part=call)]

    def end(self) -> list[PartAdded]:
        """Nothing more comes; what is to be told."""
        return self._end_reasoning()

    def _open(self, kind: Literal["text", "reasoning"], index: int, text: str) -> _Open:
        def make_event(start: int, piece: str) -> TextAdded:
            return TextAdded(message_id=self._message_id, part=index, start=start, text=piece)

        return _Open(kind, Growth(make_event, so_far=text), [text] if text else [], started_at=time.time())

    def _end_reasoning(self) -> list[PartAdded]:
        """The last part's end, where it is a reasoning that goes on."""
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Open) or last.kind != "reasoning" or last.ended_at is not None:
            return []
        last.ended_at = time.time()
        return [PartAdded(message_id=self._message_id, index=len(self._parts) - 1, part=last.record())]
