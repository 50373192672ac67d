"""Many requests, one engine: what happens in each step. Only one thread calls it, which `runtime.loop` has."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kaiwa.engines.engine import Engine, Sampled, Slice
from kaiwa.errors import OutOfMemory
from kaiwa.events import Event
from kaiwa.runtime.guesses.draft import Draft
from kaiwa.runtime.guesses.speculation import Speculator
from kaiwa.runtime.job import State
from kaiwa.runtime.outbox import Outbox
from kaiwa.runtime.prefixes.prefix_cache import SHARED, Known, PrefixCache
from kaiwa.runtime.prefixes.prefix_store import PrefixStore
from kaiwa.runtime.prefixes.radix_tree import common_prefix
from kaiwa.runtime.request import NO_SEQUENCE, Request
from kaiwa.runtime.scheduler import Plan, Scheduler

MAX_RUNNING = 32
MAX_RECURRENT_RUNNING = 4
"""Recurrent layers hold a state of its own size for each sequence, however short."""
WORTH_WAITING = 32
"""Tokens that another request must be about to read for a prompt to wait for them."""
FILE_WAIT_S = 0.01
"""How long to wait for a file before messages are looked at again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batching:
    """How requests are answered: how many at once (None is what the engine suggests), and whether with guesses."""

    max_running: int | None = None
    speculation: bool = True
    store: PrefixStore | None = None
    """Where what was read outlives this process."""


class Batcher:
    """Takes requests, and gives each of their readers its events, step by step."""

    def __init__(self, engine: Engine, batching: Batching = Batching()) -> None:
        self.engine = engine
        self.prefixes = PrefixCache(engine, batching.store)
        default = MAX_RECURRENT_RUNNING if engine.info.is_recurrent else MAX_RUNNING
        self._max_running = batching.max_running or default
        self.scheduler: Scheduler[Request] = Scheduler(
            max_step_tokens=engine.info.max_step_tokens, max_running=self._max_running
        )
        self._outbox = Outbox()
        self.num_begun = 0
        """Requests that wait no longer, or were stopped while they waited."""
        self._service_s = 0.0
        """How long requests took lately, from their beginning to their end."""
        self._free_tokens = 0
        """A lower bound of what the engine has a place for."""
        self._speculates = batching.speculation and not engine.info.is_recurrent
        self._has_moved = False
        """Whether places in the queue have changed since they were told."""

    @property
    def has_work(self) -> bool:
        """Whether a request is not finished."""
        return bool(self.scheduler.running) or self.scheduler.num_waiting > 0

    def expected_wait_s(self, place: int) -> float:
        """When the request at this place of the queue will probably begin. Any thread may ask."""
        return place * self._service_s / self._max_running

    def add(self, request: Request) -> None:
        """One more request."""
        if self._speculates:
            drafter = request.prompt.drafter
            draft = Draft(drafter, request.token_ids) if drafter is not None else None
            request.speculator = Speculator(request.token_ids, draft)
        self.scheduler.add(request)
        self._has_moved = True

    def cancel(self, request: Request) -> None:
        """End a request with what there is; one that is finished, or was never added, stays as it is."""
        if request.is_queued and request.state is not State.FINISHED:
            self._attempt(request, lambda request: self._deliver(request, request.stop()))
            self._outbox.hand_out()

    def step(self) -> None:
        """Compute the next tokens of everything that runs, and hand out what came of them."""
        self._begin_waiting()
        free_tokens = self._count_free() + self.prefixes.num_tokens
        plan = self.scheduler.plan(free_tokens)
        for request in plan.paused:
            self._give_memory_back(request)
        if parts := self._parts(plan, free_tokens - plan.num_tokens):
            self._outbox.before_step(self.scheduler.times.predict(sum(len(part.token_ids) for _, part in parts)))
            self._compute(parts)
        elif not self.scheduler.running:
            self.prefixes.wait_for_file(FILE_WAIT_S)  # what else could all wait for?
        self._outbox.after_step()

    def make_room(self, num_tokens: int) -> None:
        """Somebody else is about to use the engine, for so many tokens."""
        self._outbox.hand_out()
        self.prefixes.make_room(num_tokens)
        self._free_tokens = 0

    def tidy(self) -> bool:
        """Do a piece of what can wait for a moment without requests; whether there was any."""
        return self.prefixes.save_one()

    def close(self) -> None:
        """Give the engine's memory back. No request is left."""
        self.prefixes.close()
        self.engine.shutdown()

    def fail_all(self, error: BaseException) -> None:
        """End every request with an error."""
        for request in [*self.scheduler.running, *self.scheduler.waiting()]:
            self._fail(request, error)

    def _begin_waiting(self) -> None:
        if not self.scheduler.num_waiting:
            return
        while True:
            free_tokens = self._count_free() + self.prefixes.num_tokens
            request = self.scheduler.next_to_begin(free_tokens, self._is_held)
            if request is None:
                break
            self._attempt(request, self._begin)
        if self._has_moved:
            self._has_moved = False
            for place, request in enumerate(self.scheduler.waiting(), start=1):
                if events := request.wait(place):
                    self._outbox.put(request.reader, events, is_urgent=True)

    def _begin(self, request: Request) -> None:
        self._has_moved = True
        self._free_tokens = 0
        if request.sequence == NO_SEQUENCE:
            self.num_begun += 1
            request.begun_at = time.perf_counter()
            request.sequence, request.cached_tokens = self.prefixes.open(
                request.token_ids, request.client, self._known_of_running()
            )
            self.engine.configure(request.sequence, request.prompt.sampling, prompt_ids=request.prompt.token_ids)
        self.scheduler.begin(request, self.engine.length(request.sequence))

    def _is_held(self, request: Request) -> bool:
        """Whether it has to wait for what it begins with: another request computes it for both, or a file has it."""
        if request.sequence != NO_SEQUENCE:
            return False
        if request.waits_for is None or not _is_reading(*request.waits_for):
            request.waits_for = self._first_reader(request)
        if request.waits_for is not None:
            return True
        return self.prefixes.is_fetching(request.token_ids, request.client, self._known_of_running())

    def _first_reader(self, request: Request) -> tuple[Request, int] | None:
        match = self.prefixes.match(request.token_ids, request.client, self._known_of_running())
        num_known = match.num_tokens if match is not None else 0
        for other in self.scheduler.running:
            if other.state is State.READING and other.client in (request.client, SHARED):
                common = common_prefix(other.token_ids, request.token_ids[:-1])
                if common >= max(num_known, other.num_computed) + WORTH_WAITING:
                    return other, common
        return None

    def _known_of_running(self) -> list[Known]:
        return [
            Known(request.sequence, request.token_ids[: request.num_computed], request.client, is_running=True)
            for request in self.scheduler.running
        ]

    def _parts(self, plan: Plan[Request], free_tokens: int) -> list[tuple[Request, Slice]]:
        """What the step computes, with tokens that a grammar forced, and guesses where they pay."""
        spare = max(min(self.scheduler.num_spare(plan), free_tokens), 0)
        num_tokens = plan.num_tokens
        parts = []
        for share in plan.shares:
            request = share.job
            num_forced = min(request.num_unread - share.num_tokens, spare) if request.state is State.WRITING else 0
            try:
                most = min(spare - num_forced, request.max_guesses)
                guesses = self._guesses(request, most, num_tokens + num_forced, len(plan.shares) - 1)
                part = request.next_slice(share.num_tokens + num_forced, guesses)
            except Exception as error:  # noqa: BLE001  (a grammar's, say: its reader gets it)
                self._fail(request, error)
                continue
            parts.append((request, part))
            spare -= num_forced + len(guesses)
            num_tokens += num_forced + len(guesses)
        return parts

    def _guesses(self, request: Request, most: int, num_tokens: int, num_others: int) -> list[int]:
        if most < 1 or request.speculator is None:
            return []
        times = self.scheduler.times
        return request.speculator.guess(
            most, num_others=num_others, step_s=lambda number: times.estimate(num_tokens + number)
        )

    def _compute(self, parts: Sequence[tuple[Request, Slice]]) -> None:
        num_tokens = sum(len(part.token_ids) for _, part in parts)
        if self._free_tokens < num_tokens:
            self.prefixes.make_room(num_tokens)
            self._free_tokens = self.engine.num_free_tokens()
        started = time.perf_counter()
        try:
            results = self.engine.step([part for _, part in parts])
        except OutOfMemory as error:
            self._relieve(error)
            return
        except Exception as error:  # noqa: BLE001  (whatever it is, its request's reader gets it)
            self._isolate([request for request, _ in parts], error)
            return
        step_s = time.perf_counter() - started
        self._free_tokens -= num_tokens
        self.scheduler.times.observe(num_tokens, step_s)
        for (request, part), sampled in zip(parts, results, strict=True):
            if sampled is not None and sampled.error is not None:
                self._fail(request, sampled.error)
            else:
                self._accept(request, part, sampled, step_s)

    def _accept(self, request: Request, part: Slice, sampled: Sampled | None, step_s: float) -> None:
        num_sampled = len(sampled.token_ids) if sampled is not None else 0
        num_right = max(num_sampled - 1, 0)
        num_read = len(part.token_ids) - part.num_guesses + num_right
        if part.num_guesses and request.speculator is not None:
            request.speculator.learn(part.num_guesses, num_right)
        self.scheduler.advance(request, num_read=num_read, num_sampled=num_sampled)
        self._attempt(request, lambda request: self._deliver(request, request.accept(sampled, step_s=step_s)))
        if request.state is not State.FINISHED:
            self.scheduler.lengthen(request, len(request.token_ids) - request.num_tokens)

    def _deliver(self, request: Request, events: list[Event]) -> None:
        """Leave events for the reader; after the last one the request is over, and its sequence kept."""
        if request.is_over:
            self._release(request)
        if events:
            self._outbox.put(request.reader, events, is_urgent=request.is_over or not request.is_heard)
            request.is_heard = request.is_heard or request.generated_tokens > 0

    def _release(self, request: Request) -> None:
        self._finish(request)
        if request.sequence != NO_SEQUENCE:
            self.prefixes.keep(request.sequence, request.token_ids, request.client, num_shared=request.cached_tokens)
            request.sequence = NO_SEQUENCE

    def _attempt(self, request: Request, do: Callable[[Request], None]) -> None:
        """Do something for one request, which is the only one that fails if it does."""
        try:
            do(request)
        except Exception as error:  # noqa: BLE001  (its reader gets it)
            self._fail(request, error)

    def _fail(self, request: Request, error: BaseException) -> None:
        if request.state is not State.FINISHED:
            self._finish(request)
        if request.sequence != NO_SEQUENCE:  # in an unknown state: not to be trusted again
            self.engine.close(request.sequence)
            request.sequence = NO_SEQUENCE
        self._outbox.fail(request.reader, error)

    def _finish(self, request: Request) -> None:
        if request.sequence == NO_SEQUENCE:
            self.num_begun += 1  # it left before its turn came
        else:
            took_s = time.perf_counter() - request.begun_at
            self._service_s += (took_s - self._service_s) / 8 if self._service_s else took_s
        self.scheduler.finish(request)
        if request.speculator is not None:
            request.speculator.close()
        self._free_tokens = 0
        self._has_moved = True

    def _give_memory_back(self, request: Request) -> None:
        self.engine.truncate(request.sequence, 0)
        self._free_tokens = 0

    def _relieve(self, error: OutOfMemory) -> None:
        """The engine has less room than it said: something has to go before the step is tried again."""
        self._free_tokens = 0
        if self.prefixes.forget_oldest():
            return
        running = self.scheduler.running
        youngest = max(running, key=lambda request: request.number)
        if len(running) > 1:
            self.scheduler.pause(youngest)
            self._give_memory_back(youngest)
        else:
            self._fail(youngest, error)

    def _isolate(self, requests: Sequence[Request], error: Exception) -> None:
        """A step failed: find out whose fault it is, one by one."""
        log.warning("a step of %d requests failed: %s", len(requests), type(error).__name__)
        if len(requests) == 1:
            self._fail(requests[0], error)
            return
        for request in requests:
            self._attempt(request, self._go_back)
            while request.state is State.READING or request.state is State.WRITING:
                num_tokens = min(request.num_unread, self.engine.info.max_step_tokens)
                is_last = num_tokens == request.num_unread
                self._compute([(request, request.next_slice(num_tokens))])
                if is_last:
                    break

    def _go_back(self, request: Request) -> None:
        """Forget what a failed step may have computed."""
        self.engine.truncate(request.sequence, request.num_computed)
        self.scheduler.rewind(request, self.engine.length(request.sequence))

    def _count_free(self) -> int:
        """What the engine has a place for, asked only where that may matter: it is counted over all sequences."""
        if self._free_tokens < 2 * self.engine.info.max_step_tokens:
            self._free_tokens = self.engine.num_free_tokens()
        return self._free_tokens


def _is_reading(request: Request, num_tokens: int) -> bool:
    """Whether it has yet to read the first `num_tokens` of its prompt."""
    return request.state is State.READING and request.num_computed < num_tokens
