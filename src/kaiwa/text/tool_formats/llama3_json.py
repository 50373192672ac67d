"""Llama 3: the answer is nothing but `{"name": "…", "parameters": {…}}`, after `<|python_tag|>` or without a marker.

Source: the chat templates of meta-llama/Llama-3.1-8B-Instruct and 3.2; they take one call in an answer, and the models
write several with a semicolon between them.
"""

from __future__ import annotations

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat
from kaiwa.text.tool_formats.json_call import read_key, read_members, read_text

PYTHON_TAG = "<|python_tag|>"


def is_spoken(template: str) -> bool:
    """Whether a Llama template asks for a name and parameters."""
    return "<|start_header_id|>" in template and '"parameters"' in template and "<tool_call>" not in template


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read calls. Without a marker only the name of a tool tells them from any other JSON that a person asked for."""
    yield from source.skip_space()
    while True:
        yield from _read_call(source, calls)
        source.mark()
        yield from source.skip_space()
        if not (yield from source.accept(";")):
            return source.rewind()
        yield from source.skip_space()


def _read_call(source: Source, calls: Calls) -> Reading[None]:
    if not (yield from source.accept("{")):
        raise NoCall("no JSON object follows", is_begun=False)
    yield from source.skip_space()
    try:
        key = yield from read_key(source)
        if key == "type":
            yield from source.json_value()
            yield from source.skip_space()
            yield from source.expect(",")
            yield from source.skip_space()
            key = yield from read_key(source)
        name = (yield from read_text(source)) if key == "name" else ""
    except NoCall as error:
        raise NoCall(str(error), is_begun=False) from None
    if name not in calls.tools:
        raise NoCall("it does not begin with the name of a tool", is_begun=False)
    yield from source.skip_space()
    yield from read_members(source, calls, name=name)


def write_call(rules: Rules, tool: Tool) -> str:
    """One call: JSON throughout, so that a grammar may offer other JSON beside it."""
    members = {"name": {"const": tool.name}, "parameters": tool.parameters}
    return rules.json({"type": "object", "properties": members, "required": [*members], "additionalProperties": False})


FORMAT = ToolFormat(
    "llama3_json",
    is_spoken,
    opens=(PYTHON_TAG,),
    read=read,
    write_call=write_call,
    is_at_start=True,
    is_single=True,
)
