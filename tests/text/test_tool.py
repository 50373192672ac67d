"""Tools and choices among them, from the words of the OpenAI API."""

from __future__ import annotations

from typing import Any

import pytest

from answers import TOOLS
from conversations import TOOLS as DESCRIBED
from kaiwa.errors import InvalidOption
from kaiwa.text.tool import MAX_TOOLS, ToolChoice, read_choice, read_tools


def test_tools_are_read() -> None:
    (tool,) = read_tools(DESCRIBED)
    assert tool.name == "get_weather"
    assert set(tool.properties) == {"city", "days"}
    assert tool.required == {"city"}
    (bare,) = read_tools([{"name": "now"}])
    assert (bare.name, bare.properties, bare.required) == ("now", {}, frozenset())
    assert read_tools(None) == read_tools([]) == ()


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("get_weather", "tools='get_weather' is impossible"),
        ([{"type": "web_search"}], "tool 0 is of type 'web_search'"),
        (["x"], "tool 0 is of type 'str'"),
        ([{"name": "a"}, {"type": "function", "function": {}}], "tool 1 has the name None"),
        ([{"name": "a b"}], "has the name 'a b'"),
        ([{"name": "a"}, {"name": "a"}], "tool 1 has the name 'a', as one before"),
        ([{"name": "a", "parameters": {"type": "array"}}], "tool 'a' has the parameters"),
        ([{"name": "a", "parameters": 3}], "tool 'a' has the parameters 3"),
        ([{"name": f"a{index}"} for index in range(MAX_TOOLS + 1)], "129 tools"),
    ],
)
def test_what_is_no_tool_is_refused(tools: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        read_tools(tools)


def test_choices_are_read() -> None:
    for mode in ("none", "auto", "required"):
        assert read_choice(mode, TOOLS) == ToolChoice(mode)
    named = {"type": "function", "function": {"name": "get_weather"}}
    assert read_choice(named, TOOLS) == ToolChoice("required", "get_weather")
    assert read_choice("auto", ()) == ToolChoice("auto")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("any", "tool_choice='any' is impossible"),
        (None, "tool_choice=None is impossible"),
        ({"type": "function"}, "is impossible"),
        ({"type": "function", "function": {"name": "get_wether"}}, "names 'get_wether', which is no tool"),
    ],
)
def test_what_is_no_choice_is_refused(choice: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        read_choice(choice, TOOLS)


def test_a_near_name_is_offered_and_tools_are_asked_for() -> None:
    with pytest.raises(InvalidOption) as caught:
        read_choice({"type": "function", "function": {"name": "get_wether"}}, TOOLS)
    assert caught.value.hint == "did you mean 'get_weather'?"
    with pytest.raises(InvalidOption, match="needs tools"):
        read_choice("required", ())
    with pytest.raises(InvalidOption) as caught:
        read_choice({"type": "function", "function": {"name": "a"}}, ())
    assert caught.value.hint == "pass tools as well"
