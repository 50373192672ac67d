"""What a load may take of the memory that several models share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """What a load may take of the memory that several models share; None is no limit.

    A context that nobody chose is as long as fits its share, or where that is short, all there is. `admit` is called
    with what the model will take before it takes any, and waits until others have made room.
    """

    most_bytes: int | None
    share_bytes: int | None
    admit: Callable[[int], None]


_budget: ContextVar[Budget | None] = ContextVar("_budget", default=None)


@contextmanager
def within(budget: Budget) -> Iterator[None]:
    """Let the model that is loaded in this block keep to `budget`.

    It is not among the options of `kaiwa.LLM`, because it belongs to whoever holds several.
    """
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def admit(num_bytes: int) -> None:
    """Wait until there is room for a model that takes so much, where several share the memory."""
    if (budget := _budget.get()) is not None:
        budget.admit(num_bytes)


def current_budget() -> Budget | None:
    """The budget that the model which is being loaded has to keep to."""
    return _budget.get()
