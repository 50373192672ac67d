"""A Python function as a tool."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from kaiwa.compat.transformers.function_schema import schema_of
from kaiwa.errors import InvalidOption


def weather(city: str, days: int = 1, *, unit: str = "C") -> dict[str, float]:
    """Tells the weather.

    For some days.

    Args:
        city: The town,
            with its country
        days: How many
        unit: Of the temperature (choices: ["C", "F"])

    Returns:
        The temperatures.
    """
    return {}


def many(a: int | None, b: list[list[int]], c: Literal["x", "y"], d: float | str, e: tuple[int, str], f: Any) -> None:
    """Many types.

    Args:
        a: one
        b: two
        c: three
        d: four
        e: five
        f: six
    """


def test_a_function_by_hand() -> None:
    assert schema_of(weather) == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather.\n\nFor some days.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The town, with its country"},
                    "days": {"type": "integer", "description": "How many"},
                    "unit": {"type": "string", "enum": ["C", "F"], "description": "Of the temperature"},
                },
                "required": ["city"],
            },
            "return": {
                "type": "object",
                "additionalProperties": {"type": "number"},
                "description": "The temperatures.",
            },
        },
    }


def test_types() -> None:
    properties = schema_of(many)["function"]["parameters"]["properties"]
    for schema in properties.values():
        del schema["description"]
    assert properties == {
        "a": {"type": "integer", "nullable": True},
        "b": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "c": {"type": "string", "enum": ["x", "y"]},
        "d": {"type": ["number", "string"]},
        "e": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        "f": {},
    }


def test_mistakes() -> None:
    def silent(x: int) -> None: ...

    def untyped(x) -> None:  # type: ignore[no-untyped-def]
        """Does it.

        Args:
            x: what
        """

    def undescribed(x: int) -> None:
        """Does it."""

    def odd(x: bytes) -> None:
        """Does it.

        Args:
            x: what
        """

    for function, message in (
        (silent, "the tool silent has no docstring"),
        (untyped, "'x' of the tool untyped has no type hint"),
        (undescribed, "does not describe its argument 'x'"),
        (odd, "for which there is no JSON"),
    ):
        with pytest.raises(InvalidOption) as caught:
            schema_of(function)
        assert message in str(caught.value)
