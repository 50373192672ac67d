"""What `cache` promises: one computation, shared by all who ask, and nothing kept that should not be."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kaiwa as kw
from kaiwa.apps import cache as cache_module
from kaiwa.apps.cache import CacheInfo
from kaiwa.errors import InvalidOption


class Closable:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    results: list[Any] = [None] * len(calls)

    def work(place: int) -> None:
        try:
            results[place] = calls[place]()
        except Exception as error:  # noqa: BLE001  (the test looks at it)
            results[place] = error

    threads = [threading.Thread(target=work, args=[place]) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_that_ask_together_cause_one_computation() -> None:
    calls = []

    @kw.cache
    def load(name: str) -> object:
        calls.append(name)
        time.sleep(0.05)
        return object()

    results = in_threads(*[lambda: load("a")] * 8)
    assert len(set(map(id, results))) == 1
    assert calls == ["a"]


def test_other_keys_do_not_wait() -> None:
    go_on = threading.Event()

    @kw.cache
    def load(name: str) -> str:
        if name == "slow":
            assert go_on.wait(5)
        else:
            go_on.set()
        return name

    assert in_threads(lambda: load("slow"), lambda: load("fast")) == ["slow", "fast"]


def test_cached_functions_that_call_each_other() -> None:
    @kw.cache
    def outer(n: int) -> int:
        return inner(n) + 1

    @kw.cache
    def inner(n: int) -> int:
        return outer(n - 1) if n else 0

    assert outer(3) == 4


def test_a_function_that_waits_for_itself_is_told() -> None:
    @kw.cache
    def endless(n: int) -> int:
        return int(endless(n))

    with pytest.raises(InvalidOption, match="calls itself with the arguments that it is computing"):
        endless(1)


def test_an_error_reaches_all_who_waited_and_is_not_kept() -> None:
    problems = [ValueError("first time")]

    @kw.cache
    def load() -> str:
        time.sleep(0.05)
        if problems:
            raise problems.pop()
        return "loaded"

    results = in_threads(load, load, load)
    assert {str(result) for result in results} == {"first time"}
    assert load() == "loaded"


def test_async_functions() -> None:
    calls = []

    @kw.cache
    async def load(name: str) -> object:
        calls.append(name)
        await asyncio.sleep(0.01)
        if name == "bad":
            raise ValueError(name)
        return object()

    async def main() -> None:
        first = asyncio.ensure_future(load("a"))
        others = [asyncio.ensure_future(load("a")) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        assert len({id(await other) for other in others}) == 1, "who asked first may leave"
        assert await load("a") is await load("a")
        for _ in range(2):
            with pytest.raises(ValueError, match="bad"):
                await load("bad")

    asyncio.run(main())
    assert calls == ["a", "bad", "bad"]


def test_the_same_call_however_it_is_written() -> None:
    calls = []

    @kw.cache
    def f(x: Any, y: Any = 2, *rest: Any, z: Any = None, **more: Any) -> int:
        calls.append((x, y, rest, z, more))
        return len(calls)

    assert f(1) == f(1, 2) == f(x=1) == f(1, y=2, z=None) == 1
    assert f(1, 2, 3) == 2
    assert f(1, z=3) == 3
    assert f(1, a=1) == f(1, a=1) == 4
    assert f(True) == 5
    assert f(1.0) == 6
    assert f([1, {"a": [2]}]) == f([1, {"a": [2]}]) == 7
    assert f((1, {"a": [2]})) == 8
    with pytest.raises(InvalidOption, match="the argument x of a cached function is a bytearray"):
        f(bytearray())
    with pytest.raises(TypeError, match="missing a required argument"):
        f()  # type: ignore[call-arg]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30))
def test_never_more_entries_than_asked_for_and_every_one_that_goes_is_closed(calls: list[tuple[int, bool]]) -> None:
    made: list[Closable] = []

    @kw.cache(max_entries=2)
    def load(number: int) -> Closable:
        made.append(Closable())
        return made[-1]

    for number, clears in calls:
        if clears:
            load.clear()
        else:
            assert not load(number).is_closed
        assert load.cache_info().num_entries <= 2
        assert sum(not one.is_closed for one in made) == load.cache_info().num_entries


def test_entries_expire() -> None:
    made: list[Closable] = []

    @kw.cache(ttl=0.05)
    def load() -> Closable:
        made.append(Closable())
        return made[-1]

    assert load() is load()
    time.sleep(0.08)
    assert load() is made[1]
    assert made[0].is_closed
    assert load.cache_info() == CacheInfo(hits=1, misses=2, max_entries=None, num_entries=1)


def test_a_function_keeps_its_name_and_words() -> None:
    @kw.cache
    def load() -> int:
        """Load it."""
        return 1

    assert (load.__name__, load.__doc__) == ("load", "Load it.")


SOURCE = """
import kaiwa as kw
made = []
NAME = {name!r}
class Model:
    def close(self): made.append("closed")
@kw.cache
def load(size=1):
    made.append(NAME)
    return Model()
"""


def test_values_outlive_a_reading_of_the_code_unless_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_kept", {})
    made: list[str] = []

    def run(source: str) -> Any:
        scope: dict[str, Any] = {"__name__": "reloaded_app", "kept": made}
        exec(compile(source.replace("made = []", "made = kept"), "app.py", "exec"), scope)
        return scope["load"]

    first = run(SOURCE.format(name="a"))()
    assert run("\n\n# a comment\n" + SOURCE.format(name="a"))() is first, "nothing was changed"
    assert run(SOURCE.format(name="b"))() is not first, "a constant that it reads was"
    assert made == ["a", "closed", "b"]


@pytest.mark.parametrize("options", [{"ttl": 0}, {"ttl": -1}, {"max_entries": 0}])
def test_impossible_options(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match="is impossible"):
        kw.cache(**options)
