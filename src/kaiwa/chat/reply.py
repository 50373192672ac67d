"""A whole answer, out of its events."""

from __future__ import annotations

from collections.abc import Iterable

from kaiwa.events import Event, Finished, ReasoningDelta, Reply, ToolCall


def collect(events: Iterable[Event]) -> Reply:
    """The whole answer. The last of the events must be `Finished`."""
    *pieces, last = events
    assert isinstance(last, Finished)
    return Reply(
        text="".join(piece.text for piece in pieces),
        finish_reason=last.finish_reason,
        usage=last.usage,
        timings=last.timings,
        reasoning="".join(piece.reasoning for piece in pieces if isinstance(piece, ReasoningDelta)),
        tool_calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
    )
