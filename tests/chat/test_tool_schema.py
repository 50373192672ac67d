"""Functions as tools. The oracle compares these with transformers."""

from __future__ import annotations

from typing import Any

import pytest

from documented_functions import FUNCTIONS, Colour, Weather
from kaiwa.chat.tool_schema import describe
from kaiwa.errors import InvalidOption


def test_a_function_by_hand() -> None:
    assert describe(Weather().forecast) == {
        "type": "function",
        "function": {
            "name": "forecast",
            "description": "What the weather will be.\n\nNot today's.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where, in the local spelling"},
                    "days": {"type": "integer", "description": "For how long"},
                    "units": {"type": "string", "enum": ["C", "F"], "description": "Of temperatures"},
                },
                "required": ["city"],
            },
            "return": {"type": "array", "items": {"type": "number"}, "description": "One number per day."},
        },
    }


def test_types() -> None:
    properties = describe(FUNCTIONS["types"])["function"]["parameters"]["properties"]
    assert {
        name: {key: value for key, value in schema.items() if key != "description"}
        for name, schema in properties.items()
    } == {
        "a": {"type": "integer"},
        "b": {"type": "string", "nullable": True},
        "c": {"type": ["integer", "string"]},
        "d": {"type": "array", "items": {"type": "number"}},
        "e": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "f": {"type": "string", "enum": ["x", "y"]},
        "g": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        "h": {"type": "string", "enum": ["red", "blue"]},
        "i": {},
        "j": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}], "nullable": True},
        "k": {"type": "array"},
        "l": {"type": ["integer", "string"], "enum": [1, "one"]},
    }
    assert Colour.RED.value == "red"


def test_a_function_without_words() -> None:
    def plain(a: int) -> Any: ...

    described = describe(plain)["function"]
    assert described["description"] == ""
    assert described["parameters"]["properties"] == {"a": {"type": "integer"}}


def untyped(a):  # type: ignore[no-untyped-def]
    """No types."""


def strange(a: bytes) -> None:
    """Bytes."""


def open_ended(*values: int) -> None:
    """Any number of values."""


def keyed(**values: int) -> None:
    """Any names."""


def positional(a: int, /) -> None:
    """No name."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (untyped, "the argument 'a' of the tool 'untyped' has no type"),
        (strange, "the argument 'a' of the tool 'strange' has the type <class 'bytes'>"),
        (open_ended, r"takes \*values"),
        (keyed, r"takes \*\*values"),
        (positional, "takes a: "),
    ],
)
def test_what_json_cannot_say_is_refused(function: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        describe(function)
