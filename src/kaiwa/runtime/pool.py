"""ModelPool: models by name, each loaded once for everybody who asks, and unloaded when its memory is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kaiwa.chat.model import ModelCard
from kaiwa.errors import Cancelled, InvalidOption, KaiwaError, ModelNotFound, did_you_mean
from kaiwa.events import Progress
from kaiwa.runtime.admission import Load, PooledModel
from kaiwa.runtime.memory import available_bytes
from kaiwa.runtime.shelf import Place, Shelf, State

if TYPE_CHECKING:
    import asyncio

OnProgress = Callable[[Progress], None]

DEFAULT_SHARE = 0.9
"""Of the memory that is free when a pool is made, for its models."""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What a pool says of one of its models."""

    name: str
    state: State
    num_users: int
    is_pinned: bool
    num_bytes: int | None
    """What it takes with its context full; None where it is not in memory."""
    expires_in_s: float | None
    """When it is unloaded if nobody uses it; None is when its memory is needed."""
    progress: Progress | None
    error: Exception | None
    card: ModelCard | None
    """None where the model is not in memory."""


@dataclass(slots=True, eq=False)
class _Room:
    """A place on the shelf with what stands there, and those who wait for it."""

    place: Place
    load: Load
    model: PooledModel | None = None
    visits: list[_Visit] = field(default_factory=list)
    is_unwanted: bool = False
    """Whether the load that runs shall stop."""
    loss: Exception | None = None
    """Why the model cannot be used any more."""


@dataclass(slots=True, eq=False)
class _Visit:
    """Somebody who asked for a model. `wake` is called, from any thread, when there is something to look at."""

    room: _Room
    wake: Callable[[], None]
    outcome: PooledModel | Exception | None = None
    is_woken: bool = False

    def notify(self) -> None:
        if not self.is_woken:
            self.is_woken = True
            self.wake()

    def is_served(self, on_progress: OnProgress | None) -> bool:
        """Whether the model is there; if not, how far it has come. Raises the error that ended its load."""
        self.is_woken = False
        if isinstance(self.outcome, Exception):
            raise self.outcome.with_traceback(None)
        progress = self.room.place.progress
        if self.outcome is None and on_progress is not None and progress is not None:
            on_progress(progress)
        return self.outcome is not None

    @property
    def model(self) -> PooledModel:
        assert self.outcome is not None
        assert not isinstance(self.outcome, Exception)
        return self.outcome


class ModelPool:
    """Models that many people share.

        pool = ModelPool(max_models=2)
        pool.add("smollm2:135m", in_child("smollm2:135m"))
        async with pool.use("smollm2:135m") as model:
            async for event in model.astream("Hello"): ...

    A model is loaded in a thread of its own when somebody first uses it, once however many ask; all of them see its
    progress, and its error if it fails. The next who asks then tries again. The least recently used leaves when another
    needs its place or memory, but never while it is in use; who needs it waits for its users, first come first served.
    So do not ask for a second model while you hold a first one that might have to leave for it.

    `max_models` is how many may be in memory at once, `memory_bytes` what they may take together, by default nine
    tenths of what is free now. `keep_alive_s` is how long one stays unused; None is as long as there is room.

    Any thread and any event loop may use it.
    """

    def __init__(
        self,
        *,
        max_models: int | None = None,
        memory_bytes: int | None = None,
        keep_alive_s: float | None = None,
    ) -> None:
        _check(max_models, memory_bytes, keep_alive_s)
        free = available_bytes()
        if memory_bytes is None and free is not None:
            memory_bytes = int(free * DEFAULT_SHARE)
        self._shelf = Shelf(max_models, memory_bytes)
        self._keep_alive_s = keep_alive_s
        self._rooms: dict[str, _Room] = {}
        self._to_close: list[_Room] = []
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._keeper: threading.Thread | None = None
        self._is_closed = False

    def add(self, name: str, load: Load, *, pinned: bool = False, keep_alive_s: float | None = None) -> None:
        """Make a model known by `name`; `load` is called when somebody uses it. Nothing is loaded yet.

        A `pinned` model never leaves by itself. Raises `InvalidOption` if the name is taken.
        """
        with self._changed:
            if name in self._rooms:
                raise InvalidOption(f"the pool has a model {name!r} already", hint="give the second one another name")
            keep_s = self._keep_alive_s if keep_alive_s is None else keep_alive_s
            place = Place(name, is_pinned=pinned, keep_alive_s=keep_s)
            self._shelf.places[name] = place
            self._rooms[name] = _Room(place, load)

    @asynccontextmanager
    async def use(
        self, name: str, *, on_progress: OnProgress | None = None, keep_alive_s: float | None = None
    ) -> AsyncIterator[PooledModel]:
        """Hold a model in memory; it is loaded first if need be, and `on_progress` is told here how far it is.

        `keep_alive_s` is how long it stays after this use, in place of its own.

        Raises `ModelNotFound` for a name that was not added, `OutOfMemory` where there will be no room, `Cancelled`
        where the load is stopped, and what its load raises.
        """
        import asyncio

        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        with self._visit(name, partial(_wake_task, loop, woken), keep_alive_s) as visit:
            while not visit.is_served(on_progress):
                await woken.wait()
                woken.clear()
            yield visit.model

    @contextmanager
    def using(
        self, name: str, *, on_progress: OnProgress | None = None, keep_alive_s: float | None = None
    ) -> Iterator[PooledModel]:
        """As `use`, for a thread, which waits."""
        woken = threading.Event()
        with self._visit(name, woken.set, keep_alive_s) as visit:
            while not visit.is_served(on_progress):
                woken.wait()
                woken.clear()
            yield visit.model

    async def load(self, name: str, *, on_progress: OnProgress | None = None) -> None:
        """Load a model before somebody uses it. Raises what `use` raises."""
        async with self.use(name, on_progress=on_progress):
            pass

    def unload(self, name: str) -> None:
        """Unload a model as soon as nobody uses it; a load that runs is stopped. Raises `ModelNotFound`."""
        with self._changed:
            room = self._find(name)
            room.is_unwanted = room.place.state is State.LOADING
            self._shelf.leave(room.place)
            self._settle()

    def pin(self, name: str, *, pinned: bool = True) -> None:
        """Let a model stay in memory until it is unloaded on request, or end that. Raises `ModelNotFound`."""
        with self._changed:
            self._find(name).place.is_pinned = pinned
            self._settle()

    def models(self) -> list[ModelStatus]:
        """All models, in the order in which they were added."""
        with self._changed:
            return [_status(room, time.monotonic()) for room in self._rooms.values()]

    def status(self, name: str) -> ModelStatus:
        """One of them. Raises `ModelNotFound`."""
        with self._changed:
            return _status(self._find(name), time.monotonic())

    @property
    def memory_bytes(self) -> int | None:
        """What all models together may take; None where nobody knows."""
        return self._shelf.memory_bytes

    def close(self) -> None:
        """Give all memory back. Loads are stopped; what is being answered ends with an error."""
        with self._changed:
            self._is_closed = True
            for room in self._rooms.values():
                room.is_unwanted = True
                self._tell(room, _closed())
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for room in self._rooms.values():
            if room.model is not None:
                room.model.close()
                room.model = None

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        import asyncio

        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @contextmanager
    def _visit(self, name: str, wake: Callable[[], None], keep_alive_s: float | None) -> Iterator[_Visit]:
        """Stand in line for a model, and leave the line or the model in the end."""
        with self._changed:
            if self._is_closed:
                raise _closed()
            room = self._find(name)
            visit = _Visit(room, wake)
            place = self._shelf.arrive(name, time.monotonic())
            if place.state is State.READY:
                visit.outcome = room.model
            else:
                room.visits.append(visit)
            self._settle()
        try:
            yield visit
        finally:
            with self._changed:
                if visit in room.visits:
                    room.visits.remove(visit)
                    self._shelf.give_up(place)
                elif not isinstance(visit.outcome, Exception):
                    self._shelf.depart(place, time.monotonic(), keep_alive_s=keep_alive_s)
                self._settle()

    def _find(self, name: str) -> _Room:
        if name not in self._rooms:
            raise ModelNotFound(f"there is no model {name!r} here", hint=did_you_mean(name, self._rooms))
        return self._rooms[name]

    def _settle(self) -> None:
        """Do what the shelf says; whoever changes it calls this, with the lock held."""
        if self._is_closed:
            return
        work = self._shelf.settle(time.monotonic())
        for place in work.to_load:
            room = self._rooms[place.name]
            room.is_unwanted, room.loss = False, None
            self._start("kaiwa-load", partial(self._load, room))
        self._to_close += (self._rooms[place.name] for place in work.to_close)
        if self._shelf.next_expiry() is not None or self._to_close:
            self._ensure_keeper()
        self._changed.notify_all()

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _load(self, room: _Room) -> None:
        """A thread: one load, from its beginning to what all who waited get."""
        try:
            model = room.load(_Admission(self, room))
        except Exception as error:  # noqa: BLE001  all who wait raise it
            with self._changed:
                self._shelf.failed(room.place, error)
                self._tell(room, error)
                self._settle()
            return
        with self._changed:
            self._shelf.loaded(room.place, time.monotonic())
            room.model = model
            self._tell(room, model)
            if room.loss is not None:
                self._shelf.leave(room.place, room.loss)
            self._settle()

    def _tell(self, room: _Room, outcome: PooledModel | Exception) -> None:
        visits, room.visits = room.visits, []
        for visit in visits:
            visit.outcome = outcome
            visit.notify()

    def _ensure_keeper(self) -> None:
        if self._keeper is None or not self._keeper.is_alive():
            self._keeper = self._start("kaiwa-pool", self._keep)

    def _keep(self) -> None:
        """A thread: close what leaves, and what nobody used for long enough."""
        while (room := self._next_to_close()) is not None:
            model, room.model = room.model, None
            assert model is not None
            try:
                model.close()
            finally:
                with self._changed:
                    self._shelf.closed(room.place)
                    self._settle()

    def _next_to_close(self) -> _Room | None:
        """Wait for a model that has to be closed; None when the pool is."""
        with self._changed:
            while not self._is_closed:
                self._settle()
                if self._to_close:
                    return self._to_close.pop(0)
                expiry = self._shelf.next_expiry()
                self._changed.wait(None if expiry is None else max(expiry - time.monotonic(), 0))
            return None


class _Admission:
    """The pool as a load sees it, in the load's thread."""

    def __init__(self, pool: ModelPool, room: _Room) -> None:
        self._pool = pool
        self._room = room
        self.most_bytes = pool._shelf.memory_bytes
        self.share_bytes = pool._shelf.share_bytes()

    def admit(self, num_bytes: int) -> None:
        pool, place = self._pool, self._room.place
        with pool._changed:
            self.check()
            pool._shelf.ask(place, num_bytes)
            pool._settle()
            if place.asked_bytes is not None:
                self.report(Progress("waiting", 0, 0))
            while place.asked_bytes is not None:
                pool._changed.wait()
                self.check()
            if place.error is not None:
                raise place.error

    def report(self, progress: Progress) -> None:
        self.check()
        self._room.place.progress = progress
        with self._pool._changed:
            for visit in self._room.visits:
                visit.notify()

    def check(self) -> None:
        if self._room.is_unwanted:
            raise Cancelled(f"the load of {self._room.place.name} was stopped on request")

    def lost(self, error: Exception) -> None:
        with self._pool._changed:
            self._room.loss = error
            self._pool._shelf.leave(self._room.place, error)
            self._pool._settle()


def _wake_task(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the event loop is closed, and nobody waits any more
        loop.call_soon_threadsafe(woken.set)


def _status(room: _Room, now: float) -> ModelStatus:
    place = room.place
    has_end = place.is_idle and not place.is_pinned and place.expires_at is not None
    return ModelStatus(
        name=place.name,
        state=place.state,
        num_users=place.num_users,
        is_pinned=place.is_pinned,
        num_bytes=place.held_bytes,
        expires_in_s=max((place.expires_at or 0) - now, 0) if has_end else None,
        progress=place.progress,
        error=place.error,
        card=None if room.model is None else room.model.card,
    )


def _closed() -> KaiwaError:
    return KaiwaError("the pool of models was closed", hint="make a new ModelPool")


def _check(max_models: int | None, memory_bytes: int | None, keep_alive_s: float | None) -> None:
    if max_models is not None and max_models < 1:
        raise InvalidOption(f"max_models={max_models} is impossible", hint="at least 1 model must have a place")
    if memory_bytes is not None and memory_bytes < 1:
        raise InvalidOption(f"memory_bytes={memory_bytes} is impossible", hint="give the bytes that models may take")
    if keep_alive_s is not None and keep_alive_s < 0:
        raise InvalidOption(
            f"keep_alive_s={keep_alive_s} is impossible",
            hint="0 unloads a model right after its use, None keeps it while there is room",
        )
