"""step: a decorator that makes every call of a function a step."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from kaiwa.apps.content.step import Step, StepType

F = TypeVar("F", bound=Callable[..., Any])


@overload
def step(original_function: F) -> F: ...


@overload
def step(
    *,
    name: str | None = "",
    type: StepType = "undefined",
    id: str | None = None,
    parent_id: str | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    language: str | None = None,
    icon: str | None = None,
    show_input: bool | str = "json",
    default_open: bool = False,
    auto_collapse: bool = False,
) -> Callable[[F], F]: ...


def step(original_function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make every call of a function a step: its arguments are the input, what it returns is the output.

    Options are those of `Step`; the name is the function's unless another is given.
    """
    if original_function is None:
        return functools.partial(step, **options)
    function = original_function
    signature = inspect.signature(function)
    named = {**options, "name": options.get("name") or function.__name__}

    def begin(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Step:
        work = Step(**named)
        bound = dict(signature.bind(*arguments, **keywords).arguments)
        work.input = {name: value for name, value in bound.items() if name not in ("self", "cls")}
        return work

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*arguments: Any, **keywords: Any) -> Any:
            with begin(arguments, keywords) as work:
                result = await function(*arguments, **keywords)
                _keep(work, result)
                return result

        return awaited

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        with begin(arguments, keywords) as work:
            result = function(*arguments, **keywords)
            _keep(work, result)
            return result

    return called


def _keep(work: Step, result: object) -> None:
    """Make the result the output, where the function has not given another."""
    if result is not None and not work.output:
        work.output = result
