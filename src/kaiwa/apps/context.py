"""Context: which chat, run and step the code that is running now belongs to. Threads and tasks inherit it."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field

from kaiwa.apps.content.emitter import Emitter
from kaiwa.apps.protocol.events import Event
from kaiwa.apps.storage.entries import Entry
from kaiwa.apps.storage.growth import Growth
from kaiwa.apps.work.session import Session
from kaiwa.errors import Cancelled, NoChat


@dataclass(slots=True)
class Run:
    """One stretch of an app's work in a chat."""

    id: str
    is_stopped: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Context:
    """A session, and the run in it. `run` is None where an app acts on a chat of its own accord."""

    session: Session
    run: Run | None = None

    def emit(self, *items: Event | Entry) -> None:
        """Add to the chat's log. Raises `Cancelled` once the run was stopped, wherever its code still runs."""
        self.check()
        self.session.emit(*items)

    def grow(self, growth: Growth, text: str) -> None:
        """Add to a text. Raises as `emit` does."""
        self.check()
        self.session.log.grow(self.session.chat_id, growth, text)

    def check(self) -> None:
        """Raise `Cancelled` where the run was stopped."""
        if self.run is not None and self.run.is_stopped.is_set():
            raise Cancelled("this run was stopped", hint="let the error pass: it ends the work that nobody waits for")


CURRENT: ContextVar[Context] = ContextVar("kaiwa_context")
STEP_IDS: ContextVar[tuple[str, ...]] = ContextVar("kaiwa_step_ids", default=())
"""The steps around the code that is running now, the innermost last."""


def current() -> Context:
    """The context of the code that calls this. Raises `NoChat` outside of a chat."""
    try:
        return CURRENT.get()
    except LookupError:
        raise NoChat(
            "this belongs to a chat, and was called outside of one",
            hint="call it in a hook such as on_message, or in what a hook calls; in a thread of your own, "
            "start that thread with contextvars.copy_context().run, or use asyncio.to_thread, which does",
        ) from None


class _Public:
    """`kw.context`: the same, by attributes."""

    @property
    def session(self) -> Session:
        """The chat's session."""
        return current().session

    @property
    def current_run(self) -> Run | None:
        """The run, where there is one."""
        return current().run

    @property
    def current_step(self) -> str | None:
        """The id of the innermost step."""
        step_ids = STEP_IDS.get()
        return step_ids[-1] if step_ids else None

    @property
    def emitter(self) -> Emitter:
        """What an app can do to a page beside messages: toasts, commands, modes."""
        return Emitter(current().session)


context = _Public()
