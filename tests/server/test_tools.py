"""Tools, thoughts and answers in JSON through the clients, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from openai import BadRequestError
from pydantic import BaseModel

from live import MODEL, Live, serve
from small_model import echoes
from tool_models import call, qwen

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
HELLO = [{"role": "user", "content": "Is it warm in Ulm?"}]
SAYS = f"<think>\nWhere?\n</think>\n\nLet me see.\n{call('get_weather', city='Ulm')}"


@contextmanager
def speaking(text: str) -> Iterator[Live]:
    """A server whose model says a text, and "It is." once a tool has given its result."""
    llm = qwen(lambda prompt: "It is." if "sunny" in prompt else text)
    with serve(llm._parts.engine, llm=llm) as live:
        yield live


def test_a_call_and_its_result() -> None:
    with speaking(SAYS) as live, live.openai() as client:
        first = client.chat.completions.create(model=MODEL, messages=HELLO, tools=[WEATHER])
        message = first.choices[0].message
        assert (message.content, message.reasoning_content) == ("Let me see.", "Where?")
        [asked] = message.tool_calls
        assert (asked.function.name, json.loads(asked.function.arguments)) == ("get_weather", {"city": "Ulm"})
        assert first.choices[0].finish_reason == "tool_calls"
        turns = [*HELLO, message.model_dump(), {"role": "tool", "tool_call_id": asked.id, "content": "sunny"}]
        second = client.chat.completions.create(model=MODEL, messages=turns, tools=[WEATHER])
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("It is.", "stop")


def test_a_call_in_a_stream() -> None:
    with (
        speaking(SAYS) as live,
        live.openai() as client,
        client.chat.completions.stream(model=MODEL, messages=HELLO, tools=[WEATHER]) as stream,
    ):
        list(stream)
        [choice] = stream.get_final_completion().choices
    assert choice.finish_reason == "tool_calls"
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"city": "Ulm"}


def test_the_same_through_messages_and_responses() -> None:
    tool = {"name": "get_weather", "input_schema": PARAMETERS}
    with speaking(SAYS) as live:
        with live.anthropic() as client:
            with client.messages.stream(model=MODEL, max_tokens=500, messages=HELLO, tools=[tool]) as stream:
                message = stream.get_final_message()
            assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
            assert (message.content[2].input, message.stop_reason) == ({"city": "Ulm"}, "tool_use")
            result = {"type": "tool_result", "tool_use_id": message.content[2].id, "content": "sunny"}
            turns = [*HELLO, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
            again = client.messages.create(model=MODEL, max_tokens=500, messages=turns, tools=[tool])
            assert again.content[0].text == "It is."
        with live.openai() as client:
            tools = [{"type": "function", **WEATHER["function"]}]
            first = client.responses.create(model=MODEL, input=HELLO, tools=tools)
            assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
            result = {"type": "function_call_output", "call_id": first.output[2].call_id, "output": "sunny"}
            second = client.responses.create(model=MODEL, input=[result], tools=tools, previous_response_id=first.id)
            assert second.output_text == "It is."


def test_a_tool_that_must_be_called() -> None:
    with speaking("I would rather talk.") as live, live.openai() as client:
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = client.chat.completions.create(
                model=MODEL, messages=HELLO, tools=[WEATHER], tool_choice=choice, max_tokens=200
            )
            assert answer.choices[0].message.content is None or answer.choices[0].finish_reason == "length"
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, tools=[WEATHER], tool_choice="none")
        assert answer.choices[0].message.content == "I would rather talk."


class Colour(BaseModel):
    name: str


def test_answers_in_the_shape_of_a_schema() -> None:
    with speaking('{"name": "red"}') as live, live.openai() as client:
        parsed = client.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Colour)
        assert parsed.choices[0].message.parsed == Colour(name="red")
        assert client.responses.parse(model=MODEL, input="?", text_format=Colour).output_parsed == Colour(name="red")
        answer = client.chat.completions.create(
            model=MODEL, messages=HELLO, response_format={"type": "json_object"}, max_tokens=50
        )
        assert json.loads(answer.choices[0].message.content) == {"name": "red"}


def test_what_the_model_cannot_do_is_refused() -> None:
    with serve(echoes()) as live, live.openai() as client:
        with pytest.raises(BadRequestError, match="tool"):
            client.chat.completions.create(model=MODEL, messages=HELLO, tools=[WEATHER])
        with pytest.raises(BadRequestError, match="schema"):
            client.chat.completions.create(
                model=MODEL,
                messages=HELLO,
                response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}},
            )
