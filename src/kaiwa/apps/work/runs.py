"""Runs: an app's work in one chat, one piece after another. All of it happens in the app's loop, but `interrupt`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from kaiwa.apps.app_code import line_that_raised
from kaiwa.apps.content.growing import Outcome
from kaiwa.apps.context import CURRENT, Context, Run
from kaiwa.apps.protocol.events import MessageAdded, MessageRemoved, RunFinished, RunStarted
from kaiwa.apps.protocol.records import Message, TextPart
from kaiwa.apps.storage.entries import KeepText
from kaiwa.apps.work.ids import new_id
from kaiwa.apps.work.session import Session
from kaiwa.errors import Cancelled, KaiwaError

Cause = Literal["start", "message", "resume", "action", "settings", "window_message"]

_logger = logging.getLogger("kaiwa.apps")


@dataclass(frozen=True, slots=True)
class Job:
    """Work that waits for its turn; `message_id` is the message that it is about."""

    cause: Cause
    work: Callable[[], Awaitable[object]]
    message_id: str | None = None


class Runs:
    """The queue of a chat. `on_stopped` is awaited after a run that was stopped."""

    def __init__(self, session: Session, on_stopped: Callable[[], Awaitable[None]]) -> None:
        self._session = session
        self._on_stopped = on_stopped
        self._waiting: list[Job] = []
        self._job: Job | None = None
        self._run: Run | None = None
        self._task: asyncio.Task[object] | None = None
        self._worker: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._worker is None or self._worker.done()

    @property
    def waiting(self) -> list[str]:
        """The ids of messages that wait."""
        return [job.message_id for job in self._waiting if job.message_id is not None]

    def has(self, message_id: str) -> bool:
        """Whether a message waits, or is being answered."""
        return message_id in self.waiting or (self._job is not None and self._job.message_id == message_id)

    def put(self, job: Job) -> None:
        """Run the job when those before it are done."""
        self._waiting.append(job)
        if self.is_idle:
            self._worker = asyncio.create_task(self._work())

    def withdraw(self, message_id: str) -> bool:
        """Take back a message that waits; whether it still did."""
        job = next((job for job in self._waiting if job.message_id == message_id), None)
        if job is None:
            return False
        self._waiting.remove(job)
        self._session.emit(MessageRemoved(message_id=message_id), KeepText(message_id, ""))
        return True

    def interrupt(self) -> None:
        """Let the run's next word raise `Cancelled`, from any thread: also where its loop is blocked."""
        run = self._run
        if run is not None:
            run.is_stopped.set()

    def stop(self) -> None:
        """Stop the run. What waits is run after it."""
        self.interrupt()
        if self._task is not None:
            self._task.cancel()

    async def end(self) -> None:
        """Stop the run, and forget what waits."""
        self._waiting.clear()
        self.stop()
        if self._worker is not None:
            await asyncio.wait([self._worker])

    async def _work(self) -> None:
        while self._waiting:
            self._job = self._waiting.pop(0)
            await self._do(self._job)
            self._job = None

    async def _do(self, job: Job) -> None:
        run = self._run = Run(new_id())
        self._session.emit(RunStarted(run_id=run.id, cause=job.cause, message_id=job.message_id))
        self._task = asyncio.create_task(self._in_context(job, run))
        outcome: Outcome = "failed"
        try:
            await asyncio.wait([self._task])
            outcome = self._outcome(self._task, run)
        finally:
            self._run = self._task = None
            for growing in list(self._session.growing.values()):
                growing.end(outcome)
            self._session.growing.clear()
            self._session.emit(RunFinished(run_id=run.id, outcome=outcome))
        if outcome == "stopped":
            await self._on_stopped()

    async def _in_context(self, job: Job, run: Run) -> object:
        CURRENT.set(Context(self._session, run))
        return await job.work()

    def _outcome(self, task: asyncio.Task[object], run: Run) -> Outcome:
        if task.cancelled():
            return "stopped"
        error = task.exception()
        if error is None:
            return "stopped" if run.is_stopped.is_set() else "done"
        if isinstance(error, Cancelled):
            return "stopped"
        _tell(error)
        self._session.emit(MessageAdded(message=_apology(error, self._session.author)))
        return "failed"


def _tell(error: BaseException) -> None:
    """Log why a run failed. What Kaiwa says needs no traceback through Kaiwa, only the line of the app."""
    if isinstance(error, KaiwaError):
        line = line_that_raised(error)  # none in the app of `kaiwa run` alone
        place = f"\nat {line}" if line else ""
        hint = f"\nhint: {error.hint}" if error.hint else ""
        _logger.error("a run failed: %s%s%s", error, place, hint)
    else:
        _logger.error("a run failed: %s", error, exc_info=error)


def _apology(error: BaseException, author: str) -> Message:
    text = str(error) if isinstance(error, KaiwaError) else f"{type(error).__name__}: {error}"
    hint = f"\n\n{error.hint}" if isinstance(error, KaiwaError) and error.hint else ""
    return Message(
        id=new_id(), role="error", author=author, created_at=time.time(), parts=(TextPart(text=text + hint),)
    )
