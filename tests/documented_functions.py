"""Functions with types and docstrings of every shape that becomes a schema."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, Optional, Union


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Weather:
    """Has a method."""

    def forecast(self, city: str, days: int = 1, units: str = "C") -> list[float]:
        """What the weather will be.

        Not today's.

        Args:
            city: Where, in the
                local spelling
            days (int): For how long
            units: Of temperatures (choices: ["C", "F"])

        Returns:
            One number per day.

        Raises:
            ValueError: never
        """
        return [0.0]


def types(
    a: int,
    b: Optional[str],  # noqa: UP045  (as people write it)
    c: Union[int, str],  # noqa: UP007
    d: list[float],
    e: dict[str, bool],
    f: Literal["x", "y"],
    g: tuple[int, str],
    h: Colour,
    i: Any,
    j: list[int] | int | None,
    k: list,  # type: ignore[type-arg]
    l: Literal[1, "one"],  # noqa: E741
) -> None:
    """Types of all kinds.

    Args:
        a: one
        b: two: with a colon
        c: three
        d: four
        e: five
        f: six
        g: seven
        h: eight
        i: nine
        j: ten
        k: eleven
        l: twelve
    """


def multiply(x: float, y: float = 2.0) -> float:
    """Multiply two numbers.

    Args:
        x: The first one.
        y: The second one.

    Returns:
        The product.
    """
    return x * y


def nothing() -> None:
    """Takes nothing."""


def one_line(word: str) -> str:
    """Say a word.

    Args:
        word: The word, which may be long
            and go on
            for lines.
    """
    return word


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "types": types,
    "multiply": multiply,
    "nothing": nothing,
    "one_line": one_line,
    "forecast": Weather().forecast,
}
