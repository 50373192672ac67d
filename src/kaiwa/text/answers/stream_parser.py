"""The stream parser: an answer's text as it comes to events of text, thoughts and tool calls.

The same events come of any cut of the stream, but for the places where deltas are cut. White space beside markers is
left out; every other character of an answer is in some event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kaiwa.events import BrokenToolCall, Event, ReasoningDelta, TextDelta, TokenLogprobs, ToolCallDelta
from kaiwa.text.answers.reasoning import Reasoning
from kaiwa.text.answers.stream_source import Reading, Source
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat, guarded


class StreamParser:
    """Reads one answer. Without `tools` nothing in it is a call, whatever it looks like.

    `begun` is what the prompt has of the answer already, such as an opening `<think>`: it is read and not given again.
    """

    def __init__(
        self,
        format: ToolFormat | None,
        *,
        reasoning: Reasoning | None = None,
        tools: Iterable[Tool] = (),
        begun: str = "",
    ) -> None:
        self._source = Source()
        self._logprobs: deque[tuple[int, TokenLogprobs]] = deque()
        """Those not given yet, each with the position where its token's text begins."""
        calls = Calls(tools)
        if format is not None and format.is_whole:
            self._events = format.read(self._source, calls, "")
        else:
            self._events = _read_answer(self._source, calls, format if calls.tools else None, reasoning)
        self._advance(begun)

    def push(self, text: str, logprobs: Iterable[TokenLogprobs] = ()) -> list[Event]:
        """The events that are certain now that `text` has come. `logprobs` are those of the tokens that it is made of.

        Each is in exactly one event, the one with the first character of its token; those of markers are in the next.
        """
        self._logprobs.extend((self._source.end, token) for token in logprobs)
        return self._advance(text)

    def finish(self) -> list[Event]:
        """The last events, when the answer is over. Nothing can be pushed after."""
        self._source.is_over = True
        events = self._advance("")
        if self._logprobs:
            events.append(TextDelta("", tuple(token for _, token in self._logprobs)))
            self._logprobs.clear()
        return events

    def _advance(self, text: str) -> list[Event]:
        self._source.push(text)
        events = []
        for event in self._events:
            if event is None:
                break
            if self._logprobs and isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta | BrokenToolCall):
                event = replace(event, logprobs=tuple(self._passed_logprobs()))
            events.append(event)
        return events

    def _passed_logprobs(self) -> Iterator[TokenLogprobs]:
        """Those of the tokens that have been read."""
        while self._logprobs and self._logprobs[0][0] < self._source.position:
            yield self._logprobs.popleft()[1]


def _read_answer(source: Source, calls: Calls, format: ToolFormat | None, reasoning: Reasoning | None) -> Reading[None]:
    """Read text with thoughts and calls in it."""
    if reasoning is not None:
        yield from _read_thoughts(source, reasoning)
    if format is None:
        yield from source.until((), TextDelta)
        return
    if format.is_at_start:
        yield from _read_call_at_start(source, calls, format)
    while marker := (yield from source.until(format.opens, TextDelta, trims=True, marks=True)):
        yield from guarded(source, calls, format.read(source, calls, marker))
        if reasoning is not None:
            yield from _read_thoughts(source, reasoning)


def _read_thoughts(source: Source, reasoning: Reasoning) -> Reading[None]:
    """Read thoughts, if they begin here: several in a row, with white space around."""
    source.mark()
    yield from source.skip_space()
    if not (yield from source.accept(reasoning.opens)):
        return source.rewind()
    while True:
        source.release()
        yield from source.skip_space()
        yield from source.until((reasoning.closes,), ReasoningDelta, trims=True)
        yield from source.skip_space()
        if not (yield from source.accept(reasoning.opens)):
            return None


def _read_call_at_start(source: Source, calls: Calls, format: ToolFormat) -> Reading[None]:
    source.mark()
    yield from source.skip_space()
    if (yield from source.peek()) == "{":
        yield from guarded(source, calls, format.read(source, calls, ""))
    else:
        source.rewind()
