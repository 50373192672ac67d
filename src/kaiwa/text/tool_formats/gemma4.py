"""Gemma 4: `<|tool_call>call:name{key:<|"|>text<|"|>,other:1}<tool_call|>`, a notation of its own.

Source: the chat template of google/gemma-4-31B-it. Keys stand bare, in alphabetical order; texts stand between tokens
that no text can have, so that nothing in them is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat

OPENS, CLOSES, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
MAX_NESTING = 32


def is_spoken(template: str) -> bool:
    """Whether a template writes calls in this notation."""
    return OPENS in template and QUOTE in template


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read one call."""
    if not (yield from source.accept("call:")):
        raise NoCall("'call:' does not follow", is_begun=False)
    name = yield from source.word_until(("{",))
    yield calls.start(name.strip())
    yield from _read_value(source, calls, 0)
    yield calls.end()
    source.mark()
    yield from source.skip_space()
    if not (yield from source.accept(CLOSES)):
        source.rewind()


def _read_value(source: Source, calls: Calls, depth: int) -> Reading[None]:
    """Read one value and give it as JSON, piece by piece."""
    if depth > MAX_NESTING:
        raise NoCall(f"it nests more than {MAX_NESTING} levels deep")
    if (yield from source.accept("{")):
        yield calls.piece("{")
        yield from _read_items(source, calls, depth, closes="}")
    elif (yield from source.accept("[")):
        yield calls.piece("[")
        yield from _read_items(source, calls, depth, closes="]")
    elif (yield from source.accept(QUOTE)):
        yield calls.piece('"')
        if (yield from source.until((QUOTE,), calls.text_piece)) is None:
            raise NoCall("the answer ends within a text")
        yield calls.piece('"')
    else:
        word = yield from source.word_until((",", "}", "]"))
        yield calls.piece(_json_of(word.strip()))


def _read_items(source: Source, calls: Calls, depth: int, *, closes: str) -> Reading[None]:
    """Read what is between brackets; between braces, each value has a key."""
    yield from source.skip_space()
    is_first = True
    while not (yield from source.accept(closes)):
        if not is_first:
            yield from source.expect(",")
            yield from source.skip_space()
        comma = "" if is_first else ", "
        is_first = False
        if closes == "}":
            key = yield from _read_key(source)
            yield calls.piece(f"{comma}{json.dumps(key, ensure_ascii=False)}: ")
        elif comma:
            yield calls.piece(comma)
        yield from _read_value(source, calls, depth + 1)
        yield from source.skip_space()
    yield calls.piece(closes)


def _read_key(source: Source) -> Reading[str]:
    if (yield from source.accept(QUOTE)):
        key = yield from source.word_until((QUOTE,))
        yield from source.expect(QUOTE)
    else:
        key = (yield from source.word_until((":",))).strip()
    yield from source.skip_space()
    yield from source.expect(":")
    yield from source.skip_space()
    return key


def _json_of(word: str) -> str:
    """A number, a truth or null; any other bare word is a text without its quotes."""
    try:
        return json.dumps(json.loads(word))
    except ValueError:
        return json.dumps(word, ensure_ascii=False)


def write_call(rules: Rules, tool: Tool) -> str:
    """One call, after its marker."""
    return f"{rules.literal(f'call:{tool.name}')} {_write_object(rules, tool.parameters)} {rules.text(CLOSES)}"


def _write_value(rules: Rules, schema: Any) -> str:
    """The rule of what fits a schema, by its types; texts as they come but for `enum`."""
    schema = schema if isinstance(schema, Mapping) else {}
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices:
        return rules.either(_write_constant(rules, choice) for choice in choices)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return rules.either(_write_value(rules, one) for one in schema[union])
    kinds = schema.get("type", ("string", "number", "boolean", "null"))
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    return rules.either(_write_kind(rules, kind, schema) for kind in kinds)


def _write_kind(rules: Rules, kind: str, schema: Mapping[str, Any]) -> str:
    if kind == "string":
        return f"{rules.text(QUOTE)} {rules.text_until(QUOTE)}"
    if kind == "object":
        return _write_object(rules, schema)
    if kind == "array":
        item = _write_value(rules, schema.get("items"))
        return f'"[" ({item} ("," {item})*)? "]"'
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    return rules.json({"type": kind, **{key: schema[key] for key in bounds if key in schema}})


def _write_constant(rules: Rules, value: Any) -> str:
    if isinstance(value, str):
        return f"{rules.text(QUOTE)} {rules.literal(value)} {rules.text(QUOTE)}"
    return rules.literal(json.dumps(value))


def _write_object(rules: Rules, schema: Mapping[str, Any]) -> str:
    """Members in the order that the template writes: a rule for what comes first, and one for what follows a comma."""
    properties = schema.get("properties")
    required = schema.get("required") or ()
    members = sorted(properties.items(), key=lambda member: member[0].lower()) if properties else []
    as_first = as_next = '""'
    for key, value in reversed(members):
        member = rules.add(f"{rules.literal(key + ':')} {_write_value(rules, value)}")
        first, following = f"{member} {as_next}", f'"," {member} {as_next}'
        if key not in required:
            first, following = f"{first} | {as_first}", f"{following} | {as_next}"
        as_first, as_next = rules.add(first), rules.add(following)
    return f'"{{" {as_first} "}}"'


FORMAT = ToolFormat("gemma4", is_spoken, opens=(OPENS,), read=read, write_call=write_call, tokens=(CLOSES, QUOTE))
