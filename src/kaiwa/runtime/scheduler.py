"""The scheduler: which tokens of which requests the next step computes.

It calls no engine, knows no text, starts no thread and looks at no clock: measured times are handed in.

All running answers get their next token in every step. What else a step may take is for prompts, read in pieces: as
much as keeps the step short, so that answers flow and a request can be stopped. A prompt begins when the memory that is
free holds it. Where answers then grow beyond the memory after all, the youngest request pauses: what was computed of it
is forgotten, and read again when a request has finished. The oldest one always goes on, so that there is no deadlock;
nothing that was written is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kaiwa.runtime.fair_queue import FairQueue
from kaiwa.runtime.job import Job, State
from kaiwa.runtime.step_times import StepTimes

MAX_STEP_S = 0.1
"""A step that reads should be over by then, because only between two steps can a request be stopped."""
UNNOTICED_S = 0.02
"""A step that takes no longer stretches nothing: tokens that come more often are handed on together all the same."""
MAX_STRETCH = 2.5
"""By how much reading a prompt may stretch the time between two tokens of an answer, beyond that."""
MIN_PIECE = 8
"""Tokens of a prompt that are read at once, however slow the machine: a few cost little more than one."""
GROWTH = 32
"""Tokens of free memory that each running request should find, beyond its prompt, when another one begins."""

J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class Share(Generic[J]):
    """What a step computes of one job: its next `num_tokens` unread tokens."""

    job: J
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Plan(Generic[J]):
    """One step, and the jobs that have to give their memory back before it."""

    shares: tuple[Share[J], ...]
    paused: tuple[J, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Of all shares together."""
        return sum(share.num_tokens for share in self.shares)


class Scheduler(Generic[J]):
    """Requests from their arrival to their end."""

    def __init__(self, *, max_step_tokens: int, max_running: int) -> None:
        self.times = StepTimes()
        """Whoever runs a step tells it how long that took."""
        self.running: list[J] = []
        """What reads or writes, in the order of beginning."""
        self._max_step_tokens = max_step_tokens
        self._max_running = min(max_running, max_step_tokens)
        self._queue: FairQueue[J] = FairQueue()
        self._numbers = itertools.count()
        self._is_tight = False
        """Whether a job had to pause and none has finished since: then none begins, or they would take turns."""

    @property
    def num_waiting(self) -> int:
        """How many jobs have not begun, or pause."""
        return len(self._queue)

    def waiting(self) -> list[J]:
        """All that wait, in the order in which they will probably begin."""
        return self._queue.in_order()

    def add(self, job: J) -> None:
        """A new job, WAITING."""
        job.number = next(self._numbers)
        self._queue.join(job)

    def next_to_begin(self, free_tokens: int, is_held: Callable[[J], bool] = lambda job: False) -> J | None:
        """The waiting job that should `begin` now, or None. Ask again after each.

        `free_tokens` is what the memory holds beyond what running jobs have computed. A job that `is_held` waits for
        something else, and lets those behind it go first.
        """
        if not self._queue or len(self.running) >= self._max_running or (self._is_tight and self.running):
            return None
        piece = self._piece()
        reading: dict[str, int] = {}
        for job in self.running:
            if job.state is State.READING:
                reading[job.client] = reading.get(job.client, 0) + job.num_unread
        for client, jobs in self._queue.by_client():
            if reading.get(client, 0) >= piece:
                continue  # what this client reads already fills the next step
            first = next((job for job in jobs if not is_held(job)), None)
            if first is not None:
                promised = sum(reading.values()) + GROWTH * (len(self.running) + 1)
                fits = not self.running or first.num_tokens + promised <= free_tokens
                return first if fits else None  # none overtakes: a long prompt would wait for ever
        return None

    def begin(self, job: J, num_computed: int) -> None:
        """A waiting job starts READING; of its tokens, so many are computed already."""
        self._queue.take(job)
        job.num_computed = num_computed
        job.become(State.READING)
        self.running.append(job)

    def plan(self, free_tokens: int) -> Plan[J]:
        """The next step. Its shares take no more than `free_tokens`, unless one job alone has more to read."""
        paused: list[J] = []
        while len(self.running) > 1 and free_tokens < max(self._num_writing(), 1):
            youngest = max(self.running, key=lambda job: job.number)
            free_tokens += youngest.num_computed
            self.pause(youngest)
            paused.append(youngest)
        shares = [Share(job, 1) for job in self.running if job.state is State.WRITING]
        for share in shares:
            self._queue.charge(share.job.client, 1)
        if len(shares) < len(self.running):
            left = free_tokens - len(shares) if len(self.running) > 1 else self._max_step_tokens
            shares += self._pieces(min(self._piece(), left))
        return Plan(tuple(shares), tuple(paused))

    def num_spare(self, plan: Plan[J]) -> int:
        """How many more tokens the planned step may have without becoming too long for whoever else writes."""
        limit_s = MAX_STEP_S if len(plan.shares) == 1 else self._longest_s(self._num_writing())
        fitting = self.times.fitting(limit_s, self._max_step_tokens)
        return max(fitting - plan.num_tokens, 0)

    def advance(self, job: J, *, num_read: int, num_sampled: int) -> None:
        """A step computed `num_read` of the job's tokens and sampled new ones after them."""
        job.num_computed += num_read
        job.num_tokens += num_sampled
        if num_sampled:
            job.become(State.WRITING)

    def lengthen(self, job: J, num_tokens: int) -> None:
        """So many more tokens of a running job are known without having been sampled."""
        job.num_tokens += num_tokens

    def rewind(self, job: J, num_computed: int) -> None:
        """Of a running job, only so many tokens are still computed; the rest is read again."""
        if num_computed < job.num_computed and job.state is State.WRITING:
            job.become(State.READING)
        job.num_computed = num_computed

    def pause(self, job: J) -> None:
        """A running job waits again, with nothing computed."""
        self.running.remove(job)
        job.become(State.WAITING)
        job.num_computed = 0
        self._queue.put_back(job)
        self._is_tight = True

    def finish(self, job: J) -> None:
        """A job is over, whatever it did."""
        if job.state is State.WAITING:
            self._queue.take(job)
        else:
            self.running.remove(job)
        self._queue.leave(job)
        job.become(State.FINISHED)
        self._is_tight = False

    def _num_writing(self) -> int:
        return sum(job.state is State.WRITING for job in self.running)

    def _piece(self) -> int:
        """How many tokens of prompts the next step may read."""
        num_writing = self._num_writing()
        num_tokens = self.times.fitting(self._longest_s(num_writing), self._max_step_tokens) - num_writing
        return min(max(num_tokens, MIN_PIECE), self._max_step_tokens - num_writing)

    def _longest_s(self, num_writing: int) -> float:
        """How long a step may take while so many answers are written."""
        usual_s = self.times.predict(num_writing) if num_writing else None
        return MAX_STEP_S if usual_s is None else min(MAX_STEP_S, max(MAX_STRETCH * usual_s, UNNOTICED_S))

    def _pieces(self, num_tokens: int) -> list[Share[J]]:
        """Share `num_tokens` among the jobs that read, the client that was served least first."""
        shares = []
        readers = [job for job in self.running if job.state is State.READING]
        while num_tokens > 0 and readers:
            job = min(readers, key=self._queue.rank)
            readers.remove(job)
            shares.append(Share(job, min(num_tokens, job.num_unread)))
            num_tokens -= shares[-1].num_tokens
            self._queue.charge(job.client, shares[-1].num_tokens)
        return shares
