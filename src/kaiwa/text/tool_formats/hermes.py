"""Hermes: `<tool_call>{"name": "…", "arguments": {…}}</tool_call>`, as Qwen 2.5 and 3, Hermes and Granite 4 write it.

Source: the chat templates of NousResearch/Hermes-2-Pro-Llama-3-8B and Qwen/Qwen3-0.6B.
"""

from __future__ import annotations

from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat
from kaiwa.text.tool_formats.json_call import read_object

OPENS, CLOSES = "<tool_call>", "</tool_call>"
END = "}\n" + CLOSES


def is_spoken(template: str) -> bool:
    """Whether a template shows a JSON object between the markers."""
    return all(part in template for part in (OPENS, CLOSES, "arguments")) and not any(
        other in template for other in ("<function=", "<invoke ", "<tool_calls>", "<arg_key>")
    )


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read the objects between the markers: one, or several as some models write them. The end may be missing."""
    yield from source.skip_space()
    if (yield from source.peek()) != "{":
        raise NoCall("no JSON object follows", is_begun=False)
    while (yield from source.peek()) == "{":
        yield from read_object(source, calls)
        source.mark()
        yield from source.skip_space()
    if not (yield from source.accept(CLOSES)):
        source.rewind()


def write_call(rules: Rules, tool: Tool) -> str:
    """One call, after its marker."""
    head = rules.literal(f'\n{{"name": "{tool.name}", "arguments": ')
    return f"{head} {rules.json(tool.parameters)} {rules.text(END)}"


FORMAT = ToolFormat(
    "hermes", is_spoken, opens=(OPENS,), read=read, write_call=write_call, tokens=(CLOSES,), separator="\n"
)
