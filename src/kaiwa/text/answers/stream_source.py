"""The text of an answer as far as it has come, for readers that must not care where its pieces were cut.

A reader is a generator. It yields events, and None where the text that is there does not decide what comes next; it
goes on when more has come, or when the answer is over. So it reads like a parser of whole text, and any cut of a stream
gives the same events but for the places where deltas are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from kaiwa.events import Event
from kaiwa.text.answers.json_end import JsonEnd

Result = TypeVar("Result")
Reading = Generator[Event | None, None, Result]
"""A reader: its events, None where it waits for more text, and what it found."""

MakeEvent = Callable[[str], Event]


class NoCall(Exception):
    """What was read is no tool call; the words say why. `is_begun`: it looked like one beyond its marker."""

    def __init__(self, reason: str, *, is_begun: bool = True) -> None:
        super().__init__(reason)
        self.is_begun = is_begun


class Source:
    """Text that comes in pieces. Positions count characters from the beginning of the answer."""

    def __init__(self) -> None:
        self._text = ""
        self._base = 0
        self._mark: int | None = None
        self.position = 0
        """How many characters have been read."""
        self.is_over = False
        """Whether no more text will come."""

    @property
    def end(self) -> int:
        """How many characters have come."""
        return self._base + len(self._text)

    def push(self, text: str) -> None:
        """More text has come."""
        kept = self.position if self._mark is None else self._mark
        self._text = self._text[kept - self._base :] + text
        self._base = kept

    def mark(self) -> None:
        """Remember this place, for `marked` and `rewind`."""
        self._mark = self.position

    def release(self) -> None:
        """Forget the mark."""
        self._mark = None

    def marked(self) -> str:
        """All that was read since the mark, which is then forgotten."""
        assert self._mark is not None
        text = self._slice(self._mark, self.position)
        self._mark = None
        return text

    def rewind(self) -> None:
        """Go back to the mark and forget it."""
        assert self._mark is not None
        self.position, self._mark = self._mark, None

    def peek(self) -> Reading[str]:
        """The next character, which stays unread; empty at the end of the answer."""
        while self.position == self.end and not self.is_over:
            yield None
        return self._slice(self.position, self.position + 1)

    def skip_space(self) -> Reading[None]:
        """Read past white space."""
        while (yield from self.peek()).isspace():
            rest = self._slice(self.position, self.end)
            self.position += len(rest) - len(rest.lstrip())

    def accept(self, literal: str) -> Reading[bool]:
        """Read `literal` if that is what comes next, and nothing otherwise."""
        while True:
            rest = self._slice(self.position, self.position + len(literal))
            if rest == literal:
                self.position += len(literal)
                return True
            if self.is_over or not literal.startswith(rest):
                return False
            yield None

    def expect(self, literal: str) -> Reading[None]:
        """Read `literal`. Raises `NoCall` where something else comes."""
        if not (yield from self.accept(literal)):
            found = (yield from self.peek()) or "the end of the answer"
            raise NoCall(f"{literal!r} was expected, and {found!r} came")

    def until(
        self, markers: tuple[str, ...], make_event: MakeEvent, *, trims: bool = False, marks: bool = False
    ) -> Reading[str | None]:
        """Give events of the text before the first of the `markers`, and read the marker. None: there is none.

        What is certain to be no part of a marker is given at once. `trims` leaves out white space before a marker.
        `marks` sets the mark to the beginning of what is left out, or of the marker.
        """
        while True:
            text = self._slice(self.position, self.end)
            start, marker = first_of(text, markers)
            unsure = len(text) if self.is_over else _begun(text, markers)
            if marker and (start < unsure or self.is_over):
                before = text[:start].rstrip() if trims else text[:start]
                yield from self._give(before, make_event)
                if marks:
                    self.mark()
                self.position += start - len(before) + len(marker)
                return marker
            if self.is_over:
                yield from self._give(text, make_event)
                return None
            certain = text[: min(start, unsure)]
            yield from self._give(certain.rstrip() if trims else certain, make_event)
            yield None

    def word_until(self, markers: tuple[str, ...], *, longest: int = 200) -> Reading[str]:
        """Read the text before the first of the `markers`, which stays unread.

        Raises `NoCall` where none comes within `longest` characters.
        """
        while True:
            text = self._slice(self.position, min(self.end, self.position + longest))
            start, marker = first_of(text, markers)
            if marker and (self.is_over or start < _begun(text, markers)):
                self.position += start
                return text[:start]
            if self.is_over or len(text) >= longest:
                raise NoCall(f"{' or '.join(map(repr, markers))} does not follow")
            yield None

    def json_value(self, make_event: MakeEvent | None = None) -> Reading[str]:
        """The text of one JSON value, with events of its pieces where asked for.

        It is not checked further than needed to find its end. Raises `NoCall` where the answer ends before.
        """
        end = JsonEnd()
        pieces = []
        while True:
            text = self._slice(self.position, self.end)
            length = end.find(text)
            piece = text if length is None else text[:length]
            if piece:
                pieces.append(piece)
                if make_event is not None:
                    yield from self._give(piece, make_event)
                else:
                    self.position += len(piece)
            if length is not None:
                return "".join(pieces)
            if self.is_over:
                if end.may_end:
                    return "".join(pieces)
                raise NoCall("the answer ends before the arguments do")
            yield None

    def _give(self, text: str, make_event: MakeEvent) -> Reading[None]:
        if text:
            self.position += len(text)
            yield make_event(text)

    def _slice(self, start: int, end: int) -> str:
        return self._text[start - self._base : end - self._base]


def first_of(text: str, markers: tuple[str, ...]) -> tuple[int, str]:
    """Where the first marker begins, and the longest that begins there; the length of the text if there is none."""
    found = [(start, -len(marker), marker) for marker in markers if (start := text.find(marker)) >= 0]
    if not found:
        return len(text), ""
    start, _, marker = min(found)
    return start, marker


def _begun(text: str, markers: tuple[str, ...]) -> int:
    """Where the first beginning of a marker stands that the text's end cuts off; the length of the text if none."""
    lengths = (
        length
        for marker in markers
        for length in range(min(len(text), len(marker) - 1), 0, -1)
        if text.endswith(marker[:length])
    )
    return len(text) - max(lengths, default=0)
