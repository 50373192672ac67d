"""Mistral, in two generations: `[TOOL_CALLS][{"name": "…", "arguments": {…}}]`, and `[TOOL_CALLS]name[ARGS]{…}`.

Source: the chat templates of mistralai/Mistral-Nemo-Instruct-2407 (the first), Mistral-Small-3.2 (which puts
`[CALL_ID]` and an id before `[ARGS]`) and Ministral-3.
"""

from __future__ import annotations

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat
from kaiwa.text.tool_formats.json_call import read_object

OPENS, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"


def is_spoken(template: str) -> bool:
    """Whether a template writes calls by name."""
    return OPENS in template and ARGS in template


def is_spoken_as_list(template: str) -> bool:
    """Whether a template writes calls as one list."""
    return OPENS in template and ARGS not in template


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read a list of objects, or one call by its name: fine-tuned models write either, whatever their template says."""
    yield from source.skip_space()
    if (yield from source.peek()) == "{":
        return (yield from read_object(source, calls))
    if not (yield from source.accept("[")):
        return (yield from _read_named(source, calls))
    yield from source.skip_space()
    while not (yield from source.accept("]")):
        yield from read_object(source, calls)
        yield from source.skip_space()
        source.mark()
        if (yield from source.accept(",")):
            yield from source.skip_space()
        elif (yield from source.peek()) != "]":
            raise NoCall("the list of calls does not go on")
    return None


def _read_named(source: Source, calls: Calls) -> Reading[None]:
    try:
        name = (yield from source.word_until((CALL_ID, ARGS, "{"))).strip()
        call_id = (yield from source.word_until((ARGS, "{"))) if (yield from source.accept(CALL_ID)) else ""
        yield calls.start(name, call_id.strip())
    except NoCall as error:
        raise NoCall(str(error), is_begun=False) from None
    yield from source.accept(ARGS)
    yield from source.skip_space()
    yield from source.json_value(calls.piece)
    yield calls.end()


def write_call(rules: Rules, tool: Tool) -> str:
    """One call by its name."""
    call_id = f"({rules.text(CALL_ID)} /[a-zA-Z0-9]{{9}}/)?"
    return f"{rules.literal(tool.name)} {call_id} {rules.text(ARGS)} {rules.json(tool.parameters)}"


def write_object(rules: Rules, tool: Tool) -> str:
    """One call of a list."""
    head = rules.literal(f'{{"name": "{tool.name}", "arguments": ')
    return f"{head} {rules.json(tool.parameters)} {rules.literal('}')}"


FORMAT = ToolFormat("mistral", is_spoken, opens=(OPENS,), read=read, write_call=write_call, tokens=(CALL_ID, ARGS))
LIST_FORMAT = ToolFormat(
    "mistral_list",
    is_spoken_as_list,
    opens=(OPENS,),
    read=read,
    write_call=write_object,
    separator=", ",
    brackets=("[", "]"),
)
