"""cache: what a function returned for the same arguments, computed once however many ask."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, overload

from kaiwa.apps.cache_keys import fingerprint, key_of
from kaiwa.errors import InvalidOption

P = ParamSpec("P")
R = TypeVar("R")

_computing: ContextVar[tuple[tuple[int, Hashable], ...]] = ContextVar("kaiwa_computing", default=())
"""What the code that is running now computes, so that waiting for itself is an error and not for ever."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """How often a value was there, how often it had to be computed, and how many are kept of at most how many."""

    hits: int
    misses: int
    max_entries: int | None
    num_entries: int


class _Entry:
    """A value that is computed, or was."""

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.computed_at: float | None = None


class Store:
    """The values of one function. A lock is held while its table changes, never while anything is computed."""

    def __init__(self, ttl: float | None, max_entries: int | None) -> None:
        self.ttl = ttl
        self.max_entries = max_entries
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def claim(self, key: Hashable) -> tuple[_Entry, bool]:
        """The entry of a key, and whether the caller is the one to compute it."""
        with self._lock:
            expired = self._take_expired()
            entry = self._entries.get(key)
            is_first = entry is None
            if entry is None:
                entry = self._entries[key] = _Entry()
                self._misses += 1
            else:
                self._entries.move_to_end(key)
                self._hits += 1
        _close(expired)
        return entry, is_first

    def finish(self, key: Hashable, entry: _Entry, value: Any) -> None:
        """The value is there: for all who wait, and for who asks later."""
        entry.computed_at = time.monotonic()
        with self._lock:
            superfluous = self._take_superfluous()
        _close(superfluous)
        entry.future.set_result(value)

    def fail(self, key: Hashable, entry: _Entry, error: BaseException) -> None:
        """All who wait get the error; who asks later makes a new attempt."""
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]
        entry.future.set_exception(error)

    def clear(self) -> None:
        """Forget all values, and close those that can be closed. What is being computed still reaches who waits."""
        with self._lock:
            entries, self._entries = list(self._entries.values()), OrderedDict()
        _close(entries)

    def info(self) -> CacheInfo:
        """How it is used."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self.max_entries, len(self._entries))

    def _take_expired(self) -> list[_Entry]:
        if self.ttl is None:
            return []
        limit = time.monotonic() - self.ttl
        keys = [key for key, entry in self._entries.items() if entry.computed_at is not None]
        return [self._entries.pop(key) for key in keys if (self._entries[key].computed_at or 0) <= limit]

    def _take_superfluous(self) -> list[_Entry]:
        """The least recently used beyond `max_entries`, without those that are being computed."""
        taken: list[_Entry] = []
        if self.max_entries is None:
            return taken
        for key, entry in list(self._entries.items()):
            if len(self._entries) <= self.max_entries:
                break
            if entry.computed_at is not None and entry.future.done():
                taken.append(self._entries.pop(key))
        return taken


def _close(entries: list[_Entry]) -> None:
    """Close values that nobody gets from here any more: a model gives its memory back."""
    for entry in entries:
        if entry.future.done() and entry.future.exception() is None:
            close = getattr(entry.future.result(), "close", None)
            if callable(close):
                close()


class Cached(Generic[P, R]):
    """A function whose results are kept. It is called as the function is."""

    def __init__(self, function: Callable[P, R], store: Store) -> None:
        self._function = function
        self._store = store
        self._tasks: set[asyncio.Task[None]] = set()
        self._signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        key = key_of(self._signature, arguments, keywords)
        if inspect.iscoroutinefunction(self._function):
            return self._awaited(key, arguments, keywords)  # type: ignore[return-value]  # R is the coroutine's type
        entry, is_first = self._store.claim(key)
        if not is_first:
            self._check_not_inside(key, entry)
            value: R = entry.future.result()
            return value
        token = _computing.set((*_computing.get(), (id(self._store), key)))
        try:
            value = self._function(*arguments, **keywords)
        except BaseException as error:
            self._store.fail(key, entry, error)
            raise
        finally:
            _computing.reset(token)
        self._store.finish(key, entry, value)
        return value

    def clear(self) -> None:
        """Forget all values, and close those that can be closed."""
        self._store.clear()

    cache_clear = clear

    def cache_info(self) -> CacheInfo:
        """How the cache is used."""
        return self._store.info()

    async def _awaited(self, key: Hashable, arguments: Any, keywords: Any) -> Any:
        entry, is_first = self._store.claim(key)
        if is_first:
            # A task of its own: who asked first may leave, and the others still get the value.
            task = asyncio.create_task(self._compute(key, entry, arguments, keywords))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._check_not_inside(key, entry)
        return await asyncio.shield(asyncio.wrap_future(entry.future))

    async def _compute(self, key: Hashable, entry: _Entry, arguments: Any, keywords: Any) -> None:
        _computing.set((*_computing.get(), (id(self._store), key)))
        try:
            value = await self._function(*arguments, **keywords)  # type: ignore[misc]  # it is a coroutine function
        except BaseException as error:
            self._store.fail(key, entry, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._store.finish(key, entry, value)

    def _check_not_inside(self, key: Hashable, entry: _Entry) -> None:
        if not entry.future.done() and (id(self._store), key) in _computing.get():
            raise InvalidOption(
                f"{self._function.__qualname__} calls itself with the arguments that it is computing",
                hint="a cached function cannot wait for its own result",
            )


@overload
def cache(function: Callable[P, R]) -> Cached[P, R]: ...


@overload
def cache(*, ttl: float | None = None, max_entries: int | None = None) -> Callable[[Callable[P, R]], Cached[P, R]]: ...


def cache(
    function: Callable[..., Any] | None = None, *, ttl: float | None = None, max_entries: int | None = None
) -> Any:
    """Compute a function's result once for the same arguments, for all threads, tasks and chats.

        @kw.cache
        def load_model(name):
            return kw.LLM(name)

    Whoever asks while it is computed waits for that; an error reaches all who wait, and is not kept. Values live for
    `ttl` seconds after they were computed, and the least recently used go beyond `max_entries`; a value with a `close`
    method is closed when it goes. They also stay when the app's code is read again, unless the function has changed.

    Raises `InvalidOption` for an impossible `ttl` or `max_entries`, and when called with an argument that cannot be
    compared with others.
    """
    if ttl is not None and ttl <= 0:
        raise InvalidOption(f"ttl={ttl} is impossible", hint="it is a number of seconds above 0")
    if max_entries is not None and max_entries < 1:
        raise InvalidOption(f"max_entries={max_entries} is impossible", hint="it is a whole number of at least 1")
    if function is None:
        return functools.partial(cache, ttl=ttl, max_entries=max_entries)
    return Cached(function, _store_of(function, ttl, max_entries))


_kept: dict[str, tuple[Hashable, Store]] = {}
"""The stores of functions that stand at the top of a module, by name: they outlive a reading of their code."""


def _store_of(function: Callable[..., Any], ttl: float | None, max_entries: int | None) -> Store:
    name = f"{function.__module__}.{function.__qualname__}"
    if "<locals>" in name or "__main__" in name:
        return Store(ttl, max_entries)
    print_of = fingerprint(function)
    known = _kept.get(name)
    if known is not None and known[0] == print_of:
        known[1].ttl, known[1].max_entries = ttl, max_entries
        return known[1]
    store = Store(ttl, max_entries)
    _kept[name] = (print_of, store)
    if known is not None:
        known[1].clear()
    return store
