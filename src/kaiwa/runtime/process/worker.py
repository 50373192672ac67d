"""The child process that holds a model: takes calls from the process that wants it, and sends what comes of them.

It ends when that process does, however that comes about: nothing arrives any more then.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.events import Event, Finished
from kaiwa.runtime.process.channel import Channel
from kaiwa.runtime.process.child import OTHER_VERSION_EXIT_CODE
from kaiwa.runtime.process.wire import (
    VERSION,
    WINDOW,
    Ask,
    Begun,
    Close,
    End,
    Failed,
    Loading,
    NotLoaded,
    Part,
    Planned,
    Proceed,
    Ready,
    Start,
    Stop,
    Taken,
    Value,
    portable,
)

if TYPE_CHECKING:
    from kaiwa.runtime.pool.admission import PooledModel
    from kaiwa.runtime.stream import Stream


def main(descriptor: int, version: str) -> None:
    """The process. `descriptor` is its end of the socket pair, `version` that of the process which started it."""
    if version != VERSION:
        sys.exit(OTHER_VERSION_EXIT_CODE)
    # Its end is its parent's business: a service's stop signals go to the parent, which lets answers finish first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    faulthandler.enable()
    _volunteer()
    Worker(Channel(socket.socket(fileno=descriptor))).run()


def load_llm(*, model: str | os.PathLike[str], **options: Any) -> PooledModel:
    """A `kaiwa.LLM`. Raises `InvalidOption` for an option that it does not know."""
    import inspect

    from kaiwa.runtime.llm import LLM

    known = inspect.signature(LLM.__init__).parameters
    for name in options:
        if name not in known:
            raise InvalidOption(f"a model has no option {name!r}", hint=did_you_mean(name, known))
    return LLM(model, **options)


class Worker:
    """The model, and the calls that run."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._model: PooledModel | None = None
        self._running: dict[int, _Answer] = {}
        self._may_proceed = threading.Event()

    def run(self) -> None:
        """Take messages until there are none any more. Does not return."""
        while (messages := self._channel.receive()) is not None:
            for message in messages:
                self._take(message)
        os._exit(0)  # nobody is left to wait for, and threads that compute may take their time

    def _take(self, message: object) -> None:
        match message:
            case Ask():
                forget = partial(self._running.pop, message.number, None)
                self._running[message.number] = answer = _Answer(message, self._channel, forget)
                self._start(self._answer, answer)
            case Stop():
                if running := self._running.get(message.number):
                    running.stop(is_quiet=message.is_quiet)
            case Taken():
                if running := self._running.get(message.number):
                    running.allow(message.num_events)
            case Start():
                self._start(self._load, message)
            case Proceed():
                self._may_proceed.set()
            case Close():
                self._start(self._close)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _load(self, start: Start) -> None:
        from kaiwa.runtime.loading.budget import Budget, within

        try:
            with within(Budget(start.most_bytes, start.share_bytes, self._admit)):
                self._model = start.make(on_progress=self._report, **start.options)
        except Exception as error:  # noqa: BLE001  whoever wants the model raises it
            self._channel.send(NotLoaded(portable(error)))
            return
        gc.freeze()  # what was loaded stays, and need not be looked through again and again
        self._channel.send(Ready(self._model.card, self._model.sampling, self._model.chat_template))

    def _admit(self, num_bytes: int) -> None:
        self._channel.send(Planned(num_bytes))
        self._may_proceed.wait()

    def _report(self, progress: Any) -> None:
        self._channel.send(Loading(progress))

    def _answer(self, answer: _Answer) -> None:
        assert self._model is not None
        answer.run(self._model)

    def _close(self) -> None:
        if self._model is not None:
            self._model.close()
        os._exit(0)


class _Answer:
    """A call that runs. As the reader of a stream it is given events in the engine's thread, and waits for nothing."""

    def __init__(self, ask: Ask, channel: Channel, forget: Callable[[], object]) -> None:
        self._ask = ask
        self._channel = channel
        self._forget = forget
        self._mutex = threading.Lock()
        self._stream: Stream | None = None
        self._held: deque[Event] = deque()
        """Events that nobody has asked for yet: an answer is no longer than the context."""
        self._credit = WINDOW
        self._is_stopped = False
        self._is_quiet = False

    def run(self, model: PooledModel) -> None:
        """Call the method; a thread of its own, because prompts take time to render."""
        try:
            result = getattr(model, self._ask.method)(*self._ask.arguments, **self._ask.options)
        except Exception as error:  # noqa: BLE001  whoever called raises it
            self.fail(error)
            return
        if not self._ask.is_stream:
            self._finish(Value(self._ask.number, result))
            return
        self._channel.send(Begun(self._ask.number))
        self._stream = result
        if self._is_stopped:  # before there was something to stop
            result.cancel()
        if hasattr(result, "forward"):
            result.forward(self)
        else:  # a model that this process only speaks to
            self._read(result)

    def _read(self, events: Iterable[Event]) -> None:
        """Hand on what comes, in this thread."""
        try:
            for event in events:
                self.deliver([event])
                self.wake()
        except Exception as error:  # noqa: BLE001  whoever called raises it
            self.fail(error)

    def deliver(self, events: list[Event]) -> None:
        with self._mutex:
            self._held.extend(events)
            self._leave_held()

    def wake(self) -> None:
        self._channel.flush()

    def fail(self, error: BaseException) -> None:
        with self._mutex:
            self._credit = len(self._held)
            self._leave_held()
            self._finish(Failed(self._ask.number, portable(error)))

    def stop(self, *, is_quiet: bool) -> None:
        """End the answer within a step."""
        with self._mutex:
            self._is_quiet = self._is_quiet or is_quiet
            self._is_stopped = True
            self._leave_held()
        self._channel.flush()
        if self._stream is not None:
            self._stream.cancel()

    def allow(self, num_events: int) -> None:
        """Let so many more events be sent."""
        with self._mutex:
            self._credit += num_events
            self._leave_held()
        self._channel.flush()

    def _leave_held(self) -> None:
        """Let what may be sent go with the next flush: all of a stopped answer, nothing where nobody listens."""
        count = len(self._held) if self._is_stopped else min(self._credit, len(self._held))
        if count == 0:
            return
        events = [self._held.popleft() for _ in range(count)]
        self._credit -= count
        if not self._is_quiet:
            self._channel.leave(Part(self._ask.number, events))
        if isinstance(events[-1], Finished):
            self._finish(End(self._ask.number))

    def _finish(self, last: Value | End | Failed) -> None:
        self._channel.send(last)
        self._forget()


def _volunteer() -> None:
    """Where memory runs out, let the system end this process, which starts again, and not the one with the chats."""
    with contextlib.suppress(OSError):  # another system, or one that forbids it
        Path("/proc/self/oom_score_adj").write_text("800")
