"""Calls written as JSON objects, `{"name": "…", "arguments": {…}}`, which several formats have in common."""

from __future__ import annotations

import json

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.tool_formats.format import Calls

ARGUMENTS = ("arguments", "parameters")


def read_object(source: Source, calls: Calls) -> Reading[None]:
    """Read one object and give the events of its call.

    The arguments are given as they come where the name stands before them. Other keys, such as an id, are read over.
    """
    yield from source.expect("{")
    yield from source.skip_space()
    yield from read_members(source, calls, name=None)


def read_members(source: Source, calls: Calls, *, name: str | None) -> Reading[None]:
    """Read what follows after the `{` of an object, or after its first member where that was the `name`."""
    arguments, is_given, is_first = "{}", False, name is None
    if name is not None:
        yield calls.start(name)
    while not (yield from source.accept("}")):
        if not is_first:
            yield from source.expect(",")
            yield from source.skip_space()
        is_first = False
        key = yield from read_key(source)
        if key == "name" and name is None:
            name = yield from read_text(source)
            yield calls.start(name)
        elif key in ARGUMENTS:
            is_given = name is not None and (yield from source.peek()) != '"'
            arguments = yield from source.json_value(calls.piece if is_given else None)
        else:
            yield from source.json_value()
        yield from source.skip_space()
    if name is None:
        raise NoCall("it has no name")
    if arguments.startswith('"'):
        arguments = _text_of(arguments)  # some models write the object as text once more
    if not is_given:
        yield calls.piece(arguments)
    yield calls.end()


def read_key(source: Source) -> Reading[str]:
    """Read a key of an object, and the colon after it."""
    key = yield from read_text(source)
    yield from source.skip_space()
    yield from source.expect(":")
    yield from source.skip_space()
    return key


def read_text(source: Source) -> Reading[str]:
    """Read a JSON string."""
    if (yield from source.peek()) != '"':
        raise NoCall("a text in quotes was expected")
    return _text_of((yield from source.json_value()))


def _text_of(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        raise NoCall(f"{text[:40]} is not JSON") from None
