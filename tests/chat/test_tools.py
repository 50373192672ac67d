"""Tools at work: calls are made, results go back, errors are words, and the rounds have an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kaiwa.chat.tool_schema import schemas
from kaiwa.chat.tools import arun_tools, run_tools
from kaiwa.errors import InvalidOption
from kaiwa.events import Event, Finished, ToolCall, ToolResult
from tool_models import call, qwen, says


def get_weather(city: str) -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: Where.
    """
    if city == "Atlantis":
        raise LookupError("it sank")
    return {"city": city, "celsius": 21}


async def sleep(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(0)
    return f"slept {seconds} s"


def asks(city: str) -> Any:
    """A model that asks for the weather, and then says what it was told."""

    def answer(prompt: str) -> str:
        if "<tool_response>" not in prompt:
            return "<think>\nI must look.\n</think>\n\n" + call("get_weather", city=city)
        return prompt.rpartition("<tool_response>\n")[2].partition("\n</tool_response>")[0]

    return qwen(answer)


def results(events: list[Event]) -> list[ToolResult]:
    return [event for event in events if isinstance(event, ToolResult)]


def text(events: list[Event]) -> str:
    return "".join(event.text for event in events)


def test_a_result_goes_back_to_the_model() -> None:
    with asks("Ulm") as llm:
        events = list(run_tools(llm, "Is it warm in Ulm?", [get_weather]))
    (made,) = (event for event in events if isinstance(event, ToolCall))
    content = '{"city": "Ulm", "celsius": 21}'
    assert results(events) == [ToolResult("get_weather", content, made.id)]
    assert text(events) == content
    assert [event.finish_reason for event in events if isinstance(event, Finished)] == ["tool_calls", "stop"]
    places = [events.index(event) for event in (made, *results(events))]
    assert places == sorted(places)


def test_what_a_tool_raises_goes_to_the_model_as_text() -> None:
    with asks("Atlantis") as llm:
        events = list(run_tools(llm, "Is it warm?", [get_weather]))
    (result,) = results(events)
    assert (result.content, result.is_error) == ("error: LookupError: it sank", True)
    assert text(events) == "error: LookupError: it sank"


def test_thoughts_and_calls_are_remembered() -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return "Done." if "<tool_response>" in prompt else f"<think>\nHm.\n</think>\n\nA. {call('sleep', seconds=1)}"

    with qwen(answer) as llm:
        events = list(run_tools(llm, "Wait.", [sleep]))
    assert text(events) == "A.Done."
    assert results(events)[0].content == "slept 1 s"
    assert prompts[1].startswith(prompts[0])
    assert call("sleep", seconds=1) in prompts[1]
    assert "Hm." in prompts[1]


def test_in_an_event_loop_functions_of_both_kinds_are_called() -> None:
    async def ask(name: str, arguments: dict[str, Any], tools: list[Any]) -> list[Event]:
        with qwen(lambda prompt: "Done." if "<tool_response>" in prompt else call(name, **arguments)) as llm:
            return [event async for event in arun_tools(llm, "Go.", tools)]

    tools = [get_weather, sleep]
    assert results(asyncio.run(ask("sleep", {"seconds": 2}, tools)))[0].content == "slept 2 s"
    events = asyncio.run(ask("get_weather", {"city": "Atlantis"}, tools))
    assert results(events)[0].is_error
    assert text(events) == "Done."


def test_rounds_have_an_end() -> None:
    with says(call("sleep", seconds=0)) as llm:
        events = list(run_tools(llm, "Wait.", [sleep], max_rounds=3, max_new_tokens=200))
        assert len(results(events)) == 2
        assert text(events) == call("sleep", seconds=0), "in the last round a call is text"
    for wrong in (0, True, "2"):
        with pytest.raises(InvalidOption, match="max_rounds"):
            next(run_tools(llm, "Wait.", [sleep], max_rounds=wrong))  # type: ignore[arg-type]


def test_a_tool_of_somebody_else_ends_the_rounds() -> None:
    with says(call("sleep", seconds=0)) as llm:
        events = list(run_tools(llm, "Wait.", schemas([sleep])))
    assert results(events) == []
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["sleep"]


def test_without_calls_there_is_one_round() -> None:
    with says("Yes.") as llm:
        events = list(run_tools(llm, [{"role": "user", "content": "Sure?"}], [sleep], do_sample=False))
    assert text(events) == "Yes."
    assert sum(isinstance(event, Finished) for event in events) == 1
