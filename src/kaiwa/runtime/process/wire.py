"""What a model's process and the process that wants it say to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kaiwa
from kaiwa.chat.model import ModelCard
from kaiwa.errors import KaiwaError
from kaiwa.events import Event, Progress
from kaiwa.sampling import Sampling

VERSION = f"{kaiwa.__version__}/1"
"""To be raised whenever a message changes: both processes run the same Kaiwa, or none."""

WINDOW = 1024
"""How many events of one answer may be on their way, or wait for a reader that is slower than the model."""


@dataclass(frozen=True, slots=True)
class Start:
    """Load a model: what `make(**options)` returns."""

    make: Callable[..., Any]
    options: Mapping[str, Any]
    most_bytes: int | None = None
    share_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The load knows what memory it will take, and waits for `Proceed`."""

    num_bytes: int


@dataclass(frozen=True, slots=True)
class Proceed:
    """There is room."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How far the load is."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Ready:
    """The model is loaded."""

    card: ModelCard
    sampling: Sampling
    chat_template: str | None


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """The load raised this."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Close:
    """Unload the model and leave."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Call a method of the model. Back comes `Value`, or `Begun`, `Part`s and `End` of a stream, or `Failed`."""

    number: int
    method: str
    arguments: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Nobody wants the answer any more, or nothing beyond its last event where not `is_quiet`."""

    number: int
    is_quiet: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """So many more events were read."""

    number: int
    num_events: int


@dataclass(frozen=True, slots=True)
class Value:
    """What a method returned."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Begun:
    """The request is accepted."""

    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """The next events of an answer, as many as have come at once."""

    number: int
    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class End:
    """The answer is over."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The call raised this."""

    number: int
    error: Exception


Reply = Value | Begun | Part | End | Failed


def portable(error: BaseException) -> Exception:
    """An error as it can cross, or one in words where it cannot.

    One that is not Kaiwa's carries a note that says where in the other process it comes from.
    """
    if isinstance(error, KaiwaError):
        return error
    import pickle
    import traceback

    error.add_note("".join(["in the model's process: ", *traceback.format_exception(error)]).rstrip())
    try:
        crossed = pickle.loads(pickle.dumps(error))
        assert isinstance(crossed, Exception)
    except Exception:  # noqa: BLE001  whatever a foreign class raises when it is taken apart
        translated = KaiwaError(f"{type(error).__name__} in the model's process: {error}")
        translated.add_note(error.__notes__[-1])
        return translated
    return crossed
