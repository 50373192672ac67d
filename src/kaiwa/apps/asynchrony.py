"""Bridges between code with `async` and code without."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from kaiwa.apps.context import CURRENT
from kaiwa.errors import InvalidOption

P = ParamSpec("P")
T = TypeVar("T")


def make_async(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The same function, to be awaited: it runs in a thread, and holds nobody up."""

    @functools.wraps(function)
    async def awaited(*arguments: P.args, **keywords: P.kwargs) -> T:
        return await asyncio.to_thread(function, *arguments, **keywords)

    return awaited


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine in code without `async`: in a hook that is a plain function, or in a script.

    Inside of an event loop it does what can be done without waiting, such as sending a message. Raises `InvalidOption`
    where there is more to it: the loop cannot wait for itself.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        context = CURRENT.get(None)
        if context is None:
            return asyncio.run(work)
        return asyncio.run_coroutine_threadsafe(work, context.session.loop).result()
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise InvalidOption("run_sync would have to wait inside of an event loop, for that loop itself", hint="await it")


async def sleep(seconds: float) -> None:
    """Wait without holding anybody up."""
    await asyncio.sleep(seconds)
