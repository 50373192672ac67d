"""One engine at work: takes requests in turn and drives each, step by step, from its prompt to its last event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

from kaiwa.engines.engine import Engine, Slice
from kaiwa.errors import KaiwaError
from kaiwa.events import Event
from kaiwa.runtime.prefix_cache import Lease, PrefixCache
from kaiwa.runtime.request import Prompt, Request, State
from kaiwa.runtime.turns import Ticket, Turns
from kaiwa.text.decoder import Decoder


class Loop:
    """Makes an engine safe for many threads. It owns the engine, and shuts it down."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._lock = threading.Lock()
        """Held during every call of the engine."""
        self._turns = Turns()
        self._prefixes = PrefixCache(engine)
        self._is_closed = False

    def ticket(self) -> Ticket:
        """A place in the queue, for one `answer`."""
        return Ticket(self._turns)

    def answer(self, prompt: Prompt, new_decoder: Callable[[], Decoder], ticket: Ticket) -> Generator[Event]:
        """The events of one answer. Closing the generator, or withdrawing the ticket, ends the work within a step."""
        request = Request(
            prompt,
            new_decoder(),
            context_length=self.engine.info.context_length,
            max_step_tokens=self.engine.info.max_step_tokens,
        )
        lease: Lease | None = None
        ticket.wait()
        try:
            while True:
                if ticket.is_withdrawn:
                    events = request.stop()
                elif lease is None:
                    lease = self._lease(prompt)
                    events = self._begin(request, prompt, lease)
                else:
                    events = self._step(request, lease)
                if request.state is State.FINISHED:
                    break
                for event in events:
                    ticket.pause()
                    yield event
                    ticket.resume()
        except Exception:
            if lease is not None:
                self._discard(lease)
                lease = None
            raise
        finally:
            # Also where the garbage collector ends a forgotten answer, in any thread: nothing here waits for a lock.
            if lease is not None:
                self._prefixes.give_back(lease)
            ticket.leave()
        yield from events

    def close(self) -> None:
        """End what runs with `KaiwaError` after its step, and give the engine's memory back. Twice is once."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.engine.shutdown()
        self._turns.close()

    def _lease(self, prompt: Prompt) -> Lease:
        with self._lock:
            self._check_open()
            return self._prefixes.lease(prompt.token_ids)

    def _begin(self, request: Request, prompt: Prompt, lease: Lease) -> list[Event]:
        with self._lock:
            self._check_open()
            self.engine.configure(lease.sequence, prompt.sampling, prompt_ids=prompt.token_ids)
            return request.begin(len(lease.token_ids))

    def _step(self, request: Request, lease: Lease) -> list[Event]:
        token_ids, sample = request.next_tokens()
        with self._lock:
            self._check_open()
            started = time.perf_counter()
            self._prefixes.make_room(len(lease.token_ids) + len(token_ids))
            lease.token_ids.extend(token_ids)
            [sampled] = self.engine.step([Slice(lease.sequence, token_ids, sample)])
            return request.accept(sampled.token_ids[0] if sampled else None, step_s=time.perf_counter() - started)

    def _discard(self, lease: Lease) -> None:
        with self._lock:
            if not self._is_closed:
                self._prefixes.discard(lease)

    def _check_open(self) -> None:
        if self._is_closed:
            raise KaiwaError("the model was closed", hint="load it again with kaiwa.LLM(…)")
