"""ModelPool: models by name, each loaded once for everybody who asks, and unloaded when its memory is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Self

from kaiwa.closing import Closing
from kaiwa.errors import Cancelled, InvalidOption, ModelNotFound, did_you_mean
from kaiwa.events import Progress
from kaiwa.runtime.bell import Bell, TaskBell, ThreadBell
from kaiwa.runtime.loading.memory import available_bytes
from kaiwa.runtime.pool.admission import Load, PooledModel
from kaiwa.runtime.pool.deadlock import stuck, why_stuck
from kaiwa.runtime.pool.room import ModelStatus, Room, Visit
from kaiwa.runtime.pool.shelf import Place, Shelf, State
from kaiwa.runtime.process.model_process import isolated

OnProgress = Callable[[Progress], None]

DEFAULT_SHARE = 0.9
"""Of the memory that is free when a pool is made, for its models."""


class ModelPool(Closing):
    """Models that many people share.

        pool = ModelPool(max_models=2)
        pool.add("smollm2:135m")
        async with pool.use("smollm2:135m") as model:
            async for event in model.astream("Hello"): ...

    A model is loaded in a thread of its own when somebody first uses it, once however many ask; all of them see its
    progress, and its error if it fails. The next who asks then tries again. The least recently used leaves when another
    needs its place or memory, but never while it is in use; who needs it waits for its users, first come first served.
    Whoever asks for a second model while the first one that they hold has to leave for it gets an error.

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
        self._rooms: dict[str, Room] = {}
        self._to_close: list[Room] = []
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._keeper: threading.Thread | None = None
        self._is_closed = False

    def add(
        self, name: str, load: Load | None = None, *, pinned: bool = False, keep_alive_s: float | None = None
    ) -> None:
        """Make a model known by `name`. Nothing is loaded yet.

        `load` is called when somebody uses it; by default it loads the model of this name, in a child process. A
        `pinned` model never leaves by itself. Raises `InvalidOption` if the name is taken.
        """
        load = load or isolated(name)
        with self._changed:
            if name in self._rooms:
                raise InvalidOption(f"the pool has a model {name!r} already", hint="give the second one another name")
            keep_s = self._keep_alive_s if keep_alive_s is None else keep_alive_s
            place = Place(name, is_pinned=pinned, keep_alive_s=keep_s)
            self._shelf.places[name] = place
            self._rooms[name] = Room(place, load)

    @asynccontextmanager
    async def use(
        self, name: str, *, on_progress: OnProgress | None = None, keep_alive_s: float | None = None
    ) -> AsyncIterator[PooledModel]:
        """Hold a model in memory; it is loaded first if need be, and `on_progress` is told here how far it is.

        `keep_alive_s` is how long it stays after this use, in place of its own.

        Raises `ModelNotFound` for a name that was not added, `OutOfMemory` where there will be no room, or none before
        this task gives another model back, `Cancelled` where the load is stopped, and what its load raises.
        """
        import asyncio

        bell = TaskBell()
        with self._visit(name, bell, asyncio.current_task(), keep_alive_s) as visit:
            while not visit.is_served(on_progress):
                await bell.wait()
            yield visit.model

    @contextmanager
    def using(
        self, name: str, *, on_progress: OnProgress | None = None, keep_alive_s: float | None = None
    ) -> Iterator[PooledModel]:
        """As `use`, for a thread, which waits."""
        bell = ThreadBell()
        with self._visit(name, bell, threading.current_thread(), keep_alive_s) as visit:
            while not visit.is_served(on_progress):
                bell.wait()
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
            return [room.status(time.monotonic()) for room in self._rooms.values()]

    def status(self, name: str) -> ModelStatus:
        """One of them. Raises `ModelNotFound`."""
        with self._changed:
            return self._find(name).status(time.monotonic())

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
                room.tell(_closed())
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @contextmanager
    def _visit(self, name: str, bell: Bell, owner: object, keep_alive_s: float | None) -> Iterator[Visit]:
        """Stand in line for a model, and leave the line or the model in the end."""
        with self._changed:
            if self._is_closed:
                raise _closed()
            room = self._find(name)
            visit = Visit(room, bell, owner)
            is_user = any(user.owner is owner for user in room.users)
            place = self._shelf.arrive(name, time.monotonic(), is_user=is_user)
            if is_user or place.state is State.READY:
                assert room.model is not None
                visit.tell(room.model)
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
                elif visit in room.users:
                    room.users.remove(visit)
                    self._shelf.depart(place, time.monotonic(), keep_alive_s=keep_alive_s)
                self._settle()

    def _find(self, name: str) -> Room:
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
        while (visit := stuck(self._rooms, self._shelf)) is not None:
            visit.room.visits.remove(visit)
            self._shelf.give_up(visit.room.place)
            visit.tell(why_stuck(visit, self._rooms, self._shelf))
        if self._shelf.next_expiry() is not None or self._to_close:
            self._ensure_keeper()
        self._changed.notify_all()

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _load(self, room: Room) -> None:
        """A thread: one load, from its beginning to what all who waited get."""
        try:
            model = room.load(_Admission(self, room))
        except Exception as error:  # noqa: BLE001  all who wait raise it
            with self._changed:
                self._shelf.failed(room.place, error)
                room.tell(error)
                self._settle()
            return
        with self._changed:
            self._shelf.loaded(room.place, time.monotonic())
            room.model = model
            room.tell(model)
            if room.loss is not None:
                self._shelf.leave(room.place, room.loss)
            self._settle()

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

    def _next_to_close(self) -> Room | None:
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

    def __init__(self, pool: ModelPool, room: Room) -> None:
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
                visit.bell.ring()

    def check(self) -> None:
        if self._room.is_unwanted:
            raise Cancelled(f"the load of {self._room.place.name} was stopped on request")

    def lost(self, error: Exception) -> None:
        with self._pool._changed:
            self._room.loss = error
            self._pool._shelf.leave(self._room.place, error)
            self._pool._settle()


def _closed() -> Cancelled:
    return Cancelled("the pool of models was closed", hint="make a new ModelPool")


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
