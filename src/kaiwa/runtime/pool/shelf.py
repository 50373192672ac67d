"""Which models are in memory, and which come and go next: the rules of a pool, without its threads and clock.

It loads nothing and waits for nothing. Whoever drives it passes the time, and does what `settle` says.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kaiwa.errors import OutOfMemory
from kaiwa.events import Progress
from kaiwa.runtime.loading.planning import in_megabytes


class State(enum.Enum):
    """What becomes of a model; `NEXT` says in which order."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    READY = "ready"
    LEAVING = "leaving"
    """It is unloaded as soon as nobody uses it."""
    FAILED = "failed"
    """It could not be loaded, or kept; the next who asks for it tries again."""


NEXT: dict[State, frozenset[State]] = {
    State.UNLOADED: frozenset({State.LOADING}),
    State.LOADING: frozenset({State.READY, State.FAILED}),
    State.READY: frozenset({State.LEAVING}),
    State.LEAVING: frozenset({State.UNLOADED, State.FAILED}),
    State.FAILED: frozenset({State.LOADING}),
}


@dataclass(slots=True, eq=False)
class Place:
    """One model's place on the shelf. Times are in seconds of the driver's clock."""

    name: str
    is_pinned: bool = False
    keep_alive_s: float | None = None
    """How long it stays after its last use; None is for as long as there is room."""
    state: State = State.UNLOADED
    num_users: int = 0
    num_waiting: int = 0
    asked_bytes: int | None = None
    """What its load has asked for and not got yet."""
    held_bytes: int | None = None
    """What it takes, from the moment its load may take it until it has left."""
    is_closing: bool = False
    used_at: float = 0.0
    expires_at: float | None = None
    progress: Progress | None = None
    error: Exception | None = None

    def become(self, state: State) -> None:
        """The one place where states change."""
        assert state in NEXT[self.state], f"{self.name} cannot become {state.value} while it is {self.state.value}"
        self.state = state

    @property
    def is_idle(self) -> bool:
        """Whether it could be unloaded at once."""
        return self.state is State.READY and self.num_users == 0


@dataclass(frozen=True, slots=True)
class Work:
    """What the driver does next."""

    to_load: tuple[Place, ...] = ()
    answered: tuple[Place, ...] = ()
    """Loads that asked for memory, and may go on; those with an `error` may not, which is then `failed`."""
    to_close: tuple[Place, ...] = ()


@dataclass(slots=True)
class Shelf:
    """The places of all models that are known.

    At most `max_models` are in memory at once, and together they take at most `memory_bytes`; None is no limit.
    """

    max_models: int | None = None
    memory_bytes: int | None = None
    places: dict[str, Place] = field(default_factory=dict)
    _queue: list[Place] = field(default_factory=list)
    """Loads that wait for memory, the first in line first. Nobody overtakes, so that a large model gets its turn."""

    def arrive(self, name: str, now: float, *, is_user: bool = False) -> Place:
        """Somebody wants to use a model. It is theirs when it is READY, and they then are one of its users.

        Who `is_user` already gets it once more: it cannot leave before.
        """
        place = self.places[name]
        if place.state is State.READY or is_user:
            place.num_users += 1
            place.used_at = now
        else:
            place.num_waiting += 1
        return place

    def give_up(self, place: Place) -> None:
        """Somebody who waited does so no longer; a load that has begun goes on for the next."""
        place.num_waiting -= 1

    def depart(self, place: Place, now: float, *, keep_alive_s: float | None = None) -> None:
        """A user has finished. `keep_alive_s` is how long the model then stays, in place of its own."""
        place.num_users -= 1
        place.used_at = now
        keep_s = place.keep_alive_s if keep_alive_s is None else keep_alive_s
        place.expires_at = None if keep_s is None else now + keep_s

    def ask(self, place: Place, num_bytes: int) -> None:
        """A load wants to take `num_bytes`; `settle` answers it when there is room, or with an `error` if never."""
        place.asked_bytes = num_bytes
        self._queue.append(place)

    def loaded(self, place: Place, now: float) -> None:
        """A load has succeeded: all who waited are its users now."""
        place.become(State.READY)
        place.num_users, place.num_waiting = place.num_waiting, 0
        place.used_at = now
        place.expires_at = None if place.keep_alive_s is None else now + place.keep_alive_s
        place.progress = place.error = None

    def failed(self, place: Place, error: Exception) -> None:
        """A load has failed for all who waited, and is not kept."""
        place.become(State.FAILED)
        place.error = error
        place.num_waiting = 0
        self._free(place)

    def leave(self, place: Place, error: Exception | None = None) -> None:
        """Unload a model that is READY as soon as nobody uses it; with an `error` if it cannot be used any more."""
        if place.state is State.READY:
            place.become(State.LEAVING)
            place.error = error

    def closed(self, place: Place) -> None:
        """A model's memory is given back."""
        place.is_closing = False
        place.become(State.UNLOADED if place.error is None else State.FAILED)
        self._free(place)

    def settle(self, now: float) -> Work:
        """Apply the rules, and say what is to be done."""
        for place in self.places.values():
            if place.is_idle and not place.is_pinned and place.expires_at is not None and place.expires_at <= now:
                self.leave(place)
        answered = self._answer()
        to_close = [place for place in self._in(State.LEAVING) if place.num_users == 0 and not place.is_closing]
        for place in to_close:
            place.is_closing = True
        to_load = [place for place in self._in(State.UNLOADED, State.FAILED) if place.num_waiting]
        for place in to_load:
            place.become(State.LOADING)
            place.progress = place.error = None
        return Work(tuple(to_load), tuple(answered), tuple(to_close))

    def next_expiry(self) -> float | None:
        """When the next model has to leave that nobody uses."""
        times = [place.expires_at for place in self.places.values() if place.is_idle and not place.is_pinned]
        return min((time for time in times if time is not None), default=None)

    def hindrances(self, place: Place) -> list[Place]:
        """The models in use that have to leave before somebody who waits for `place` can get it."""
        if place.state is State.LEAVING:
            return [place] if place.num_users else []
        if place not in self._queue:
            return []
        leaving = self._in(State.LEAVING)
        num_models, num_bytes = self.held()
        num_models, num_bytes = num_models - len(leaving), num_bytes - sum(other.held_bytes or 0 for other in leaving)
        return [
            other
            for other in leaving
            if other.num_users
            and not self._has_room(self._queue[0], (num_models + 1, num_bytes + (other.held_bytes or 0)))
        ]

    def held(self) -> tuple[int, int]:
        """How many models take memory, and how many bytes."""
        taken = [place.held_bytes for place in self.places.values() if place.held_bytes is not None]
        return len(taken), sum(taken)

    def share_bytes(self) -> int | None:
        """What each model may take if all that fit beside each other take the same."""
        num_models = min(len(self.places), self.max_models or len(self.places))
        return None if self.memory_bytes is None else self.memory_bytes // max(num_models, 1)

    def _in(self, *states: State) -> list[Place]:
        return [place for place in self.places.values() if place.state in states]

    def _free(self, place: Place) -> None:
        place.asked_bytes = place.held_bytes = None
        if place in self._queue:
            self._queue.remove(place)

    def _answer(self) -> list[Place]:
        """Take from the queue who gets what it asked for, or never can; make room for who is first then."""
        answered = []
        while self._queue:
            place = self._queue[0]
            place.error = self._why_never(place)
            if place.error is None and not self._has_room(place, self.held()):
                self._make_room(place)
                break
            if place.error is None:
                place.held_bytes = place.asked_bytes
            place.asked_bytes = None
            answered.append(self._queue.pop(0))
        return answered

    def _has_room(self, place: Place, held: tuple[int, int]) -> bool:
        num_models, num_bytes = held
        return (self.max_models is None or num_models < self.max_models) and (
            self.memory_bytes is None or num_bytes + (place.asked_bytes or 0) <= self.memory_bytes
        )

    def _make_room(self, place: Place) -> None:
        """Let leave who is idle, then who is in use, least recently used first, until there is room for `place`."""
        num_models, num_bytes = self.held()
        for leaving in self._in(State.LEAVING):
            num_models, num_bytes = num_models - 1, num_bytes - (leaving.held_bytes or 0)
        candidates = [other for other in self._in(State.READY) if not other.is_pinned]
        for victim in sorted(candidates, key=lambda other: (other.num_users > 0, other.used_at)):
            if self._has_room(place, (num_models, num_bytes)):
                return
            self.leave(victim)
            num_models, num_bytes = num_models - 1, num_bytes - (victim.held_bytes or 0)

    def _why_never(self, place: Place) -> OutOfMemory | None:
        """Why there would be no room for `place` even if every model left that may."""
        num_bytes = place.asked_bytes or 0
        pinned = [other for other in self.places.values() if other.is_pinned and other is not place]
        taken = sum(other.held_bytes or 0 for other in pinned)
        names = ", ".join(sorted(other.name for other in pinned))
        if self.max_models is not None and len(pinned) >= self.max_models:
            return OutOfMemory(
                f"there is no place for {place.name}: of the models, {self.max_models} may be in memory at once, "
                f"and {names} must stay",
                hint="unpin one, or raise max_models",
            )
        if self.memory_bytes is None or taken + num_bytes <= self.memory_bytes:
            return None
        stays = f", of which {names} takes {in_megabytes(taken)} and must stay" if taken else ""
        return OutOfMemory(
            f"{place.name} needs {in_megabytes(num_bytes)}, and all models together may take "
            f"{in_megabytes(self.memory_bytes)}{stays}",
            hint=f"load it with a shorter context_length or a quantization, so that it takes at most "
            f"{in_megabytes(self.memory_bytes - taken)}",
        )
