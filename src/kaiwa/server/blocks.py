"""An answer as a row of blocks: text, thoughts and calls of tools, one after the other. It knows no JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from kaiwa.events import BrokenToolCall, Event, ReasoningDelta, ToolCall, ToolCallDelta, ToolCallStarted
from kaiwa.server.json_text import dumps

Kind = Literal["text", "thinking", "tool_use"]


@dataclass(slots=True)
class Block:
    """One block. `pieces` are of its text, or of the JSON text of a call's arguments."""

    index: int
    kind: Kind
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    is_taken_back: bool = False
    """Whether what began as a call turned out to be none. A stream has told of it already."""

    @property
    def content(self) -> str:
        """All of it."""
        return "".join(self.pieces)


Change = tuple[Literal["open", "add", "close"], Block, str]


class Blocks:
    """Sorts events into blocks, and says how each event changes them."""

    def __init__(self) -> None:
        self._all: list[Block] = []
        self._open: Block | None = None
        self._calls: dict[int, Block] = {}

    @property
    def kept(self) -> list[Block]:
        """All blocks but those that were taken back."""
        return [block for block in self._all if not block.is_taken_back]

    def push(self, event: Event) -> Iterator[Change]:
        """What becomes of the blocks by an event, in order."""
        if isinstance(event, ReasoningDelta):
            yield from self._add("thinking", event.reasoning)
        elif isinstance(event, ToolCallStarted):
            yield from self._begin_call(event.index, event.id, event.name)
        elif isinstance(event, ToolCallDelta):
            yield from self._put(self._calls[event.index], event.arguments)
        elif isinstance(event, ToolCall):
            if event.index not in self._calls:
                yield from self._begin_call(event.index, event.id, event.name)
                yield from self._put(self._calls[event.index], dumps(event.arguments))
        elif event.text:
            if isinstance(event, BrokenToolCall) and event.index is not None:
                self._calls[event.index].is_taken_back = True
            yield from self._add("text", event.text)

    def close(self) -> Iterator[Change]:
        """The end of the last block."""
        if self._open is not None:
            yield "close", self._open, ""
            self._open = None

    def _add(self, kind: Kind, piece: str) -> Iterator[Change]:
        if self._open is None or self._open.kind != kind:
            yield from self._begin(Block(len(self._all), kind))
        assert self._open is not None
        yield from self._put(self._open, piece)

    def _begin_call(self, number: int, id_: str, name: str) -> Iterator[Change]:
        self._calls[number] = Block(len(self._all), "tool_use", id_, name)
        yield from self._begin(self._calls[number])

    def _begin(self, block: Block) -> Iterator[Change]:
        yield from self.close()
        self._all.append(block)
        self._open = block
        yield "open", block, ""

    def _put(self, block: Block, piece: str) -> Iterator[Change]:
        block.pieces.append(piece)
        yield "add", block, piece
