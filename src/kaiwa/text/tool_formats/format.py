"""What a tool format is: how a family of models writes its calls, and how they are read and written."""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kaiwa.events import BrokenToolCall, TextDelta, ToolCall, ToolCallDelta, ToolCallStarted
from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_ID_LETTERS = string.ascii_letters + string.digits
_ID_LENGTH = 9
"""Mistral's templates refuse ids of another length, and all others take any."""


class Read(Protocol):
    """Reads calls, or whole answers; `marker` is the one before, or empty.

    Raises `NoCall` where none follows. `calls` makes the events.
    """

    def __call__(self, source: Source, calls: Calls, marker: str) -> Reading[None]: ...


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """One way to write calls."""

    name: str
    is_spoken: Callable[[str], bool]
    """Whether a chat template writes calls so."""
    opens: tuple[str, ...]
    """The markers that begin calls, anywhere in the text."""
    read: Read
    """Reads what follows after such a marker, until text may follow again."""
    write_call: Callable[[Rules, Tool], str]
    """The rule of one whole call after its marker, in the words of a grammar."""
    tokens: tuple[str, ...] = ()
    """Further markers, which are shown to the reader where the tokenizer calls them control tokens."""
    separator: str = ""
    """What stands between two calls."""
    brackets: tuple[str, str] = ("", "")
    """What stands around all calls, where one marker is for all of them."""
    is_at_start: bool = False
    """Whether a call may also begin without a marker, where the answer begins."""
    is_single: bool = False
    """Whether an answer has one call at most."""
    is_whole: bool = False
    """Whether this is the format of whole answers, thoughts and text included, and `read` reads one from its start."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that are tokens of their own in the vocabularies of models that know the format."""
        return (*self.opens[:1], *self.tokens)


class Calls:
    """Makes the events of one answer's calls: counts them, and gives each its id."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._num_started = 0
        self._open: ToolCallStarted | None = None
        self._arguments: list[str] = []

    def start(self, name: str, call_id: str = "") -> ToolCallStarted:
        """A call begins. Raises `NoCall` where the name is none."""
        if not _NAME.fullmatch(name):
            raise NoCall(f"{name[:40]!r} is not the name of a tool", is_begun=False)
        call_id = call_id or "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
        self._open = ToolCallStarted(self._num_started, call_id, name)
        self._arguments = []
        self._num_started += 1
        return self._open

    def piece(self, arguments: str) -> ToolCallDelta:
        """More of the arguments' JSON text."""
        assert self._open is not None
        self._arguments.append(arguments)
        return ToolCallDelta(self._open.index, arguments)

    def text_piece(self, text: str) -> ToolCallDelta:
        """More of a text within the arguments, as JSON writes it between the quotes."""
        return self.piece(json.dumps(text, ensure_ascii=False)[1:-1])

    def end(self) -> ToolCall:
        """The call is whole. Raises `NoCall` where its arguments are no JSON object."""
        assert self._open is not None
        arguments = _object("".join(self._arguments))
        call = ToolCall(self._open.name, arguments, self._open.id, self._open.index)
        self._open = None
        return call

    def give_up(self) -> int | None:
        """The call that is begun will never be whole; its index, if there is one."""
        index = None if self._open is None else self._open.index
        self._open = None
        return index


def guarded(source: Source, calls: Calls, reading: Reading[None]) -> Reading[None]:
    """Read calls from the source's mark on. What turns out to be none is given as it was written, all of it."""
    try:
        yield from reading
    except NoCall as error:
        index = calls.give_up()
        text = source.marked()
        yield TextDelta(text) if index is None and not error.is_begun else BrokenToolCall(text, str(error), index)
    else:
        source.release()


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoCall(f"its arguments are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NoCall(f"its arguments are {text[:40]}, not an object")
    return value
