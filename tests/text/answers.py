"""Answers as models write them in each tool format, and what must come of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kaiwa.events import (
    BrokenToolCall,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
)
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.answers.reasoning import KNOWN
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats import gemma4, harmony, hermes, llama3_json, mistral, qwen3_coder

WEATHER = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
)
NOTHING = Tool("no_arguments", {"type": "object", "properties": {}})
TOOLS = (WEATHER, NOTHING)
CITY = 'Kö"ln\n}</x> \\'


@dataclass(frozen=True, slots=True)
class Sample:
    """A format, and how its models write a call of `get_weather` with this city, 2 days and a tag."""

    answer: AnswerFormat
    call: str
    before: str = ""
    """What stands before a text in every answer."""
    between: str = "\n"

    def parser(self, **changes: Any) -> StreamParser:
        return replace(self.answer, **changes).parser(TOOLS)


GEMMA, BRACKETS, TAGS = KNOWN[0], KNOWN[1], KNOWN[2]
_JSON = r'{"city": "Kö\"ln\n}</x> \\", "days": 2, "tags": ["a"]}'
SAMPLES = {
    "hermes": Sample(
        AnswerFormat(hermes.FORMAT, TAGS),
        f'<tool_call>\n{{"name": "get_weather", "arguments": {_JSON}}}\n</tool_call>',
    ),
    "llama3_json": Sample(
        AnswerFormat(llama3_json.FORMAT), f'{{"name": "get_weather", "parameters": {_JSON}}}', between="; "
    ),
    "mistral": Sample(
        AnswerFormat(mistral.FORMAT, BRACKETS), f"[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{_JSON}", between=""
    ),
    "mistral_list": Sample(
        AnswerFormat(mistral.LIST_FORMAT), f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {_JSON}}}]'
    ),
    "qwen3_coder": Sample(
        AnswerFormat(qwen3_coder.FORMAT, TAGS),
        f"<tool_call>\n<function=get_weather>\n<parameter=city>\n{CITY}\n</parameter>\n<parameter=days>\n2\n"
        '</parameter>\n<parameter=tags>\n["a"]\n</parameter>\n</function>\n</tool_call>',
    ),
    "gemma4": Sample(
        AnswerFormat(gemma4.FORMAT, GEMMA),
        f'<|tool_call>call:get_weather{{city:<|"|>{CITY}<|"|>,days:2,tags:[<|"|>a<|"|>]}}<tool_call|>',
        between="",
    ),
    "harmony": Sample(
        AnswerFormat(harmony.FORMAT),
        f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{_JSON}",
        before="<|channel|>final<|message|>",
        between="<|end|><|start|>assistant",
    ),
}
ARGUMENTS = {"city": CITY, "days": 2, "tags": ["a"]}


def parse(parser: StreamParser, pieces: Iterable[str]) -> list[Event]:
    """All events of an answer that comes in pieces."""
    return [*(event for piece in pieces for event in parser.push(piece)), *parser.finish()]


def merged(events: Iterable[Event]) -> list[Event]:
    """The events without what the cut of the stream decides: deltas are joined, ids taken out."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text, last.logprobs + event.logprobs)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            joined[-1] = ReasoningDelta(last.reasoning + event.reasoning, logprobs=last.logprobs + event.logprobs)
        elif isinstance(event, ToolCallDelta) and isinstance(last, ToolCallDelta) and event.index == last.index:
            logprobs = last.logprobs + event.logprobs
            joined[-1] = ToolCallDelta(event.index, last.arguments + event.arguments, logprobs=logprobs)
        elif isinstance(event, ToolCallStarted | ToolCall):
            joined.append(replace(event, id=""))
        else:
            joined.append(event)
    return joined


def text_of(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events)


def thoughts_of(events: Iterable[Event]) -> str:
    return "".join(event.reasoning for event in events if isinstance(event, ReasoningDelta))


def calls_of(events: Iterable[Event]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall)]


def broken_of(events: Iterable[Event]) -> list[BrokenToolCall]:
    return [event for event in events if isinstance(event, BrokenToolCall)]
