"""A pool's room: a place on its shelf, the model that stands there, and everybody who waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kaiwa.chat.model import ModelCard
from kaiwa.events import Progress
from kaiwa.runtime.bell import Bell
from kaiwa.runtime.pool.admission import Load, PooledModel
from kaiwa.runtime.pool.shelf import Place, State


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What a pool says of one of its models."""

    name: str
    state: State
    num_users: int
    num_waiting: int
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
class Room:
    """A place on the shelf with what stands there, and those who wait for it."""

    place: Place
    load: Load
    model: PooledModel | None = None
    visits: list[Visit] = field(default_factory=list)
    """Those who wait."""
    users: list[Visit] = field(default_factory=list)
    is_unwanted: bool = False
    """Whether the load that runs shall stop."""
    loss: Exception | None = None
    """Why the model cannot be used any more."""

    def status(self, now: float) -> ModelStatus:
        """What is to be said of it."""
        place = self.place
        has_end = place.is_idle and not place.is_pinned and place.expires_at is not None
        return ModelStatus(
            name=place.name,
            state=place.state,
            num_users=place.num_users,
            num_waiting=place.num_waiting,
            is_pinned=place.is_pinned,
            num_bytes=place.held_bytes,
            expires_in_s=max((place.expires_at or 0) - now, 0) if has_end else None,
            progress=place.progress,
            error=place.error,
            card=None if self.model is None else self.model.card,
        )

    def tell(self, outcome: PooledModel | Exception) -> None:
        """Give everybody who waits what they waited for."""
        visits, self.visits = self.visits, []
        for visit in visits:
            visit.tell(outcome)


@dataclass(slots=True, eq=False)
class Visit:
    """Somebody who asked for a model. `bell` rings when there is something to look at.

    `owner` is the task or thread that asks, and does nothing else while it waits.
    """

    room: Room
    bell: Bell
    owner: object
    outcome: PooledModel | Exception | None = None

    def tell(self, outcome: PooledModel | Exception) -> None:
        """Give them what they waited for."""
        self.outcome = outcome
        if not isinstance(outcome, Exception):
            self.room.users.append(self)
        self.bell.ring()

    def is_served(self, on_progress: Callable[[Progress], None] | None) -> bool:
        """Whether the model is there; if not, `on_progress` is told how far it is. Raises what ended its load."""
        if isinstance(self.outcome, Exception):
            raise self.outcome.with_traceback(None)
        progress = self.room.place.progress
        if self.outcome is None and on_progress is not None and progress is not None:
            on_progress(progress)
        return self.outcome is not None

    @property
    def model(self) -> PooledModel:
        """The model, when `is_served`."""
        assert self.outcome is not None
        assert not isinstance(self.outcome, Exception)
        return self.outcome
