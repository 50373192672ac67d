"""Qwen3-Coder's XML, which Qwen 3.5 writes too: a function, and each argument as plain text between tags of its own.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Köln
    </parameter>
    </function>
    </tool_call>

Source: the chat templates of Qwen/Qwen3-Coder-30B-A3B-Instruct and Qwen/Qwen3.5-4B. Whether an argument is a text or
JSON, only its tool's schema says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat

OPENS, CLOSES = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
"""The templates write these values as Python does."""


def is_spoken(template: str) -> bool:
    """Whether a template writes functions and parameters as tags."""
    return all(part in template for part in (OPENS, FUNCTION, PARAMETER))


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read one call. Models leave out the outer tags at times."""
    if marker == OPENS:
        yield from source.skip_space()
        if not (yield from source.accept(FUNCTION)):
            raise NoCall("no function follows", is_begun=False)
    try:
        name = yield from source.word_until((">",))
        yield calls.start(name)
    except NoCall as error:
        raise NoCall(str(error), is_begun=False) from None
    yield from source.expect(">")
    yield calls.piece("{")
    yield from _read_parameters(source, calls, name)
    yield calls.piece("}")
    yield calls.end()
    source.mark()
    yield from source.skip_space()
    if not (yield from source.accept(CLOSES)):
        source.rewind()


def _read_parameters(source: Source, calls: Calls, name: str) -> Reading[None]:
    properties = calls.tools[name].properties if name in calls.tools else {}
    is_first = True
    while True:
        yield from source.skip_space()
        if (yield from source.accept(FUNCTION_END)):
            return
        yield from source.expect(PARAMETER)
        key = yield from source.word_until((">",))
        yield from source.expect(">")
        yield from source.accept("\n")
        yield calls.piece(("" if is_first else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
        yield from _read_value(source, calls, properties.get(key))
        is_first = False


def _read_value(source: Source, calls: Calls, schema: Any) -> Reading[None]:
    ends = ("\n" + PARAMETER_END, PARAMETER_END)
    if is_text(schema):
        yield calls.piece('"')
        found = yield from source.until(ends, calls.text_piece)
        if found is None:
            raise NoCall(f"the answer ends before {PARAMETER_END}")
        yield calls.piece('"')
        return
    value = yield from source.word_until(ends, longest=1_000_000)
    if not (yield from source.accept(ends[0])):
        yield from source.expect(ends[1])
    yield calls.piece(_json_of(value.strip()))


def _json_of(value: str) -> str:
    """The JSON that a value says, or its text as JSON where it says none."""
    value = _PYTHON_WORDS.get(value, value)
    try:
        return json.dumps(json.loads(value), ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps(value, ensure_ascii=False)


def is_text(schema: Any) -> bool:
    """Whether an argument is a text by its schema, so that nothing in it is read as JSON."""
    if not isinstance(schema, Mapping):
        return False
    if "enum" in schema:
        return all(isinstance(value, str) for value in schema["enum"])
    return schema.get("type") == "string" or isinstance(schema.get("const"), str)


def write_call(rules: Rules, tool: Tool) -> str:
    """One call, after its marker, with its arguments in the order of the schema."""
    parts = [rules.literal(f"\n{FUNCTION}{tool.name}>\n")]
    for key, schema in tool.properties.items():
        rule = rules.add(f"{rules.literal(f'{PARAMETER}{key}>' + chr(10))} {_write_value(rules, schema)}")
        parts.append(rule if key in tool.required else f"{rule}?")
    return " ".join((*parts, rules.text(f"{FUNCTION_END}\n{CLOSES}")))


def _write_value(rules: Rules, schema: Any) -> str:
    end = f"\n{PARAMETER_END}\n"
    if not is_text(schema):
        return f"{rules.json(schema)} {rules.literal(end)}"
    choices = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else []
    if choices:
        return f"{rules.either(rules.literal(choice) for choice in choices)} {rules.literal(end)}"
    return rules.text_until(end)


FORMAT = ToolFormat(
    "qwen3_coder",
    is_spoken,
    opens=(OPENS, FUNCTION),
    read=read,
    write_call=write_call,
    tokens=(CLOSES,),
    separator="\n",
)
