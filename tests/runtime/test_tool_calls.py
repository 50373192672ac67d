"""Tools, thoughts and JSON through an LLM: events as they come, whole replies, and honest reasons for their end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.errors import InvalidOption, TemplateError
from kaiwa.events import (
    BrokenToolCall,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
)
from small_model import model as small_model
from small_model import says as small_says
from tool_models import call, qwen, says


def get_weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: Where.
        days: For how many days.
    """
    return f"sunny in {city} for {days} days"


SCHEMA = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
COLOURS = {"type": "json_schema", "json_schema": {"name": "c", "schema": {"enum": ["red", "blue"]}}}


def steps_of(llm: Any) -> list[Slice]:
    engine: ScriptedEngine = llm._parts.engine
    return [part for step in engine.steps for part in step]


@pytest.mark.parametrize("tools", [[get_weather], [SCHEMA]])
def test_a_call_as_it_comes(tools: Any) -> None:
    with says(f"<think>\nWhere?\n</think>\n\nLet me see.\n{call('get_weather', city='Ulm')}") as llm:
        events = list(llm.stream("Is it warm in Ulm?", tools=tools))
        assert "".join(event.reasoning for event in events if isinstance(event, ReasoningDelta)) == "Where?"
        assert "".join(event.text for event in events) == "Let me see."
        (started,) = (event for event in events if isinstance(event, ToolCallStarted))
        pieces = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
        assert len(pieces) > 3
        assert json.loads("".join(pieces)) == {"city": "Ulm"}
        (whole,) = (event for event in events if isinstance(event, ToolCall))
        assert whole == ToolCall("get_weather", {"city": "Ulm"}, started.id, 0)
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.finish_reason == "tool_calls"


def test_a_whole_reply_with_calls() -> None:
    both = f"{call('get_weather', city='Ulm')}\n{call('get_weather', city='Bonn')}"
    with says(both) as llm:
        reply = llm.chat("Warm?", tools=[get_weather])
        assert [made.arguments["city"] for made in reply.tool_calls] == ["Ulm", "Bonn"]
        assert (reply.text, reply.finish_reason) == ("", "tool_calls")
        alone = llm.chat("Warm?", tools=[get_weather], parallel_tool_calls=False)
        assert [made.arguments["city"] for made in alone.tool_calls] == ["Ulm"]
        assert alone.finish_reason == "tool_calls"


def test_arguments_fit_the_schema_whatever_the_model_wants() -> None:
    with says(call("get_wether", town=7)) as llm:
        engine: ScriptedEngine = llm._parts.engine  # type: ignore[assignment]
        reply = llm.chat("Warm?", tools=[get_weather], max_new_tokens=200)
        masked = [part for part in steps_of(llm) if part.allowed is not None]
        assert masked
        assert len(engine.steps) > len(masked), "nothing is masked before the call"
        if reply.tool_calls:
            assert set(reply.tool_calls[0].arguments) <= {"city", "days"}


def test_a_call_that_is_required() -> None:
    with says("<tool_call>I would rather not.") as llm:
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            reply = llm.chat("Warm?", tools=[SCHEMA], tool_choice=choice, max_new_tokens=60)
            assert reply.text.startswith('<tool_call>\n{"name": "get_weather", "arguments": {')
            assert reply.finish_reason == "length", "a script knows no arguments; but it has to begin a call"


def test_an_answer_that_ends_inside_a_call_shows_it() -> None:
    with says(call("get_weather", city="Ulm")) as llm:
        events = list(llm.stream("Warm?", tools=[get_weather], max_new_tokens=45))
        (broken,) = (event for event in events if isinstance(event, BrokenToolCall))
        assert broken.index == 0
        assert "".join(event.text for event in events).startswith('<tool_call>\n{"name": "get_weather"')
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.finish_reason == "length"


def test_without_tools_or_where_none_may_be_called_a_call_is_text() -> None:
    text = call("get_weather")
    with says(text) as llm:
        options: list[dict[str, Any]] = [{}, {"tools": [get_weather], "tool_choice": "none"}, {"tools": []}]
        for given in options:
            reply = llm.chat("How do you call tools?", **given)
            assert (reply.text, reply.tool_calls, reply.finish_reason) == (text, (), "stop")


def test_thoughts_and_text() -> None:
    with says("<think>\nHm.\n</think>\n\n`<think>` is a tag.") as llm:
        reply = llm.chat("What is <think>?")
        assert (reply.reasoning, reply.text) == ("Hm.", "`<think>` is a tag.")
        assert llm.chat("What?", template_variables={"enable_thinking": False}).reasoning == "Hm."


def test_logprobs_are_those_of_every_token() -> None:
    text = f"<think>Hm.</think>Yes. {call('get_weather', city='Ulm')}"
    with says(text) as llm:
        events = list(llm.stream("Warm?", tools=[get_weather], num_logprobs=0))
        told = [token.token for event in events for token in getattr(event, "logprobs", ())]
        assert b"".join(told).decode() == text


def test_json() -> None:
    with says('{"a": [1, 2]}') as llm:
        assert llm.chat("JSON!", response_format={"type": "json_object"}).text == '{"a": [1, 2]}'
        assert llm.chat("JSON!", response_format={"type": "text"}).text == '{"a": [1, 2]}'
    with says('"red" it is') as llm:
        reply = llm.chat("A colour?", response_format=COLOURS)
        assert (reply.text, reply.finish_reason) == ('"red"', "stop")


def test_json_after_thoughts_and_beside_tools() -> None:
    with says('<think>\nHm {.\n</think>\n\n"blue"') as llm:
        reply = llm.chat("A colour?", response_format=COLOURS)
        assert (reply.reasoning, reply.text) == ("Hm {.", '"blue"')
        assert llm.chat("A colour?", response_format=COLOURS, tools=[get_weather]).text == '"blue"'
    with says(call("get_weather", city="Ulm")) as llm:
        reply = llm.chat("A colour?", response_format=COLOURS, tools=[get_weather])
        assert [made.name for made in reply.tool_calls] == ["get_weather"]


def test_a_final_message_is_continued() -> None:
    with qwen(lambda prompt: " four." if prompt.endswith("Two and two is") else "?") as llm:
        turns = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "Two and two is"}]
        assert llm.chat(turns, continue_final_message=True).text == " four."
    with says(" so.\n</think>\n\nYes.") as llm:
        turns = [{"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "<think>\nI think"}]
        reply = llm.chat(turns, continue_final_message=True)
        assert (reply.reasoning, reply.text) == (" so.", "Yes.")


def test_a_model_whose_template_knows_no_tools_refuses_them() -> None:
    with small_model(small_says("Hi")) as llm:
        with pytest.raises(TemplateError, match="no place for tools"):
            llm.stream("Hi", tools=[get_weather])
        assert llm.chat("Hi", response_format=COLOURS, max_new_tokens=9).text == '"blue"'


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": [3]}, "tool 0 is of type 'int'"),
        ({"tools": [get_weather, SCHEMA]}, "tool 1 has the name 'get_weather', as one before"),
        ({"tools": [lambda city: city]}, "has no type"),
        ({"tool_choice": "required"}, "needs tools"),
        ({"tools": [SCHEMA], "tool_choice": "any"}, "tool_choice='any'"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls=1"),
        ({"response_format": "json"}, "response_format='json' is impossible"),
        ({"response_format": {"type": "json_shema"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "has no schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}, "has 'not'"),
    ],
)
def test_what_is_impossible_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with says("Hi") as llm:
        with pytest.raises(InvalidOption, match=words):
            llm.stream("Hi", **options)
        assert steps_of(llm) == []


def test_the_near_response_format_is_offered() -> None:
    with says("Hi") as llm, pytest.raises(InvalidOption) as caught:
        llm.stream("Hi", response_format={"type": "json_shema"})
    assert caught.value.hint == "did you mean 'json_schema'?"


def test_in_an_event_loop() -> None:
    async def ask() -> list[Any]:
        with says(call("get_weather", city="Ulm")) as llm:
            return [event async for event in llm.astream("Warm?", tools=[get_weather])]

    events = asyncio.run(ask())
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["get_weather"]
    assert not any(isinstance(event, TextDelta) for event in events)


def test_what_must_come_is_computed_at_once() -> None:
    text = "The one and only answer that there is."
    wanted = {"type": "json_schema", "json_schema": {"name": "c", "schema": {"const": text}}}
    with says("<think>\nHm.\n</think>\n\nno") as llm:
        events = list(llm.stream("Well?", response_format=wanted, template_variables={"enable_thinking": False}))
        last = events[-1]
        assert isinstance(last, Finished)
        assert "".join(event.text for event in events) == f'"{text}"'
        assert last.finish_reason == "stop"
        assert last.usage.generated_tokens >= len(text)
        assert len(steps_of(llm)) < len(text) / 2
        one_by_one = llm.chat("Well?", response_format=wanted, num_logprobs=0)
        assert one_by_one.text == f'"{text}"', "each has a probability, and so each is drawn"
        cut = llm.chat("Well?", response_format=wanted, max_new_tokens=20)
        assert (cut.usage.generated_tokens, cut.finish_reason) == (20, "length")


def test_an_answer_under_a_grammar_is_the_same_beside_others() -> None:
    with says(f"Yes. {call('get_weather', city='Ulm', days=2)}") as llm:
        streams = [llm.stream("Warm?", tools=[get_weather]) for _ in range(4)]
        replies = [[event for event in stream if isinstance(event, ToolCall)] for stream in streams]
        assert [[made.arguments for made in calls] for calls in replies] == [[{"city": "Ulm", "days": 2}]] * 4
