"""The engine's thread: it runs steps while there is work, and ends when there is none for a moment.

Requests come from any thread and any event loop. Whatever takes part in stopping one waits for no lock, as it may be
called by a signal handler or the garbage collector at any point of any thread.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from kaiwa.engines.engine import Engine
from kaiwa.errors import Busy, KaiwaError
from kaiwa.runtime.batcher import Batcher
from kaiwa.runtime.request import Request

MAX_WAITING = 256
LINGER_S = 0.05
"""How long the thread waits for more work before it ends: the next request starts another within 0.1 ms."""

T = TypeVar("T")


class Loop:
    """Makes an engine safe for many threads. It owns the engine, and shuts it down."""

    def __init__(self, batcher: Batcher, *, max_waiting: int = MAX_WAITING) -> None:
        self._worker = _Worker(batcher)
        self._max_waiting = max_waiting
        self._num_submitted = 0
        _open_loops.add(self)

    @property
    def engine(self) -> Engine:
        """What computes. Only what is handed to `call` may use it."""
        return self._worker.batcher.engine

    @property
    def num_waiting(self) -> int:
        """How many requests have not begun."""
        return self._num_submitted - self._worker.batcher.num_begun

    @property
    def is_busy(self) -> bool:
        """Whether a request is not finished."""
        return self.num_waiting > 0 or self._worker.batcher.has_work

    def submit(self, request: Request) -> None:
        """Answer a request. Raises `Busy` where too many wait already, `KaiwaError` after `close`."""
        with self._worker.mutex:
            self._worker.check_open()
            if (num_waiting := self.num_waiting) >= self._max_waiting:
                raise Busy(num_waiting + 1, self._worker.batcher.expected_wait_s(num_waiting + 1))
            self._num_submitted += 1
            self._worker.post(_Message(lambda batcher: batcher.add(request), refuse=request.reader.fail))

    def cancel(self, request: Request) -> None:
        """End a request after the step that runs. Waits for nothing; twice is once."""
        self._worker.leave(_Message(lambda batcher: batcher.cancel(request)))

    def submit_call(self, function: Callable[[Engine], T], *, num_tokens: int = 0) -> Future[T]:
        """Do something else with the engine, between two steps, which takes memory for `num_tokens`.

        Raises `KaiwaError` after `close`.
        """
        future: Future[T] = Future()

        def answer(batcher: Batcher) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                batcher.make_room(num_tokens)
                future.set_result(function(batcher.engine))
            except Exception as error:  # noqa: BLE001  (whoever called gets it)
                future.set_exception(error)

        with self._worker.mutex:
            self._worker.check_open()
            self._worker.post(_Message(answer, refuse=future.set_exception))
        return future

    def call(self, function: Callable[[Engine], T], *, num_tokens: int = 0) -> T:
        """As `submit_call`, and wait for what it gives."""
        return self.submit_call(function, num_tokens=num_tokens).result()

    def close(self) -> None:
        """End what runs with `KaiwaError` after its step, and give the engine's memory back. Twice is once."""
        self._worker.close()

    def __del__(self) -> None:
        # Neither model nor streams are left. The collector may be in the engine's thread, which cannot wait for itself.
        self._worker.leave(_CLOSE)


@dataclass(frozen=True, slots=True)
class _Message:
    """Something to do between two steps, and who is told where that will never be."""

    do: Callable[[Batcher], None]
    refuse: Callable[[KaiwaError], None] = lambda error: None


_CLOSE = _Message(lambda batcher: None)


class _Worker:
    """The thread's side of a loop. It does not know the loop, so that a loop that is forgotten ends it."""

    def __init__(self, batcher: Batcher) -> None:
        self.batcher = batcher
        self.mutex = threading.Lock()
        """Held by whoever posts, and while the thread decides to end."""
        self._messages: deque[_Message] = deque()
        self._bell = threading.Lock()
        """Free where there may be a message: the thread waits for it when it has nothing to do."""
        self._bell.acquire()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def check_open(self) -> None:
        """Raises `KaiwaError` after `close`."""
        if self._is_closed:
            raise _was_closed()

    def post(self, message: _Message) -> None:
        """Hand a message over, and see that the thread runs. The mutex is held."""
        self.leave(message)
        if self._thread is None:
            # A daemon, so that a forgotten model holds up no program's end. `_close_all` ends it in an orderly way.
            self._thread = threading.Thread(target=self._run, name="kaiwa-engine", daemon=True)
            self._thread.start()

    def leave(self, message: _Message) -> None:
        """Hand over a message that only matters where the thread runs."""
        self._messages.append(message)
        with contextlib.suppress(RuntimeError):  # it rings already
            self._bell.release()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self.leave(_CLOSE)
        with self.mutex:
            thread = self._thread
        if thread is None:
            self._end(_was_closed())
        elif thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            while True:
                self._take_messages()
                if self._is_closed:
                    return
                if self.batcher.has_work:
                    self.batcher.step()
                elif not self.batcher.tidy() and not self._wait():
                    return
        except BaseException as error:
            self._end(error)
            raise

    def _take_messages(self) -> None:
        while self._messages and not self._is_closed:
            message = self._messages.popleft()
            if message is _CLOSE:
                self._end(_was_closed())
            else:
                message.do(self.batcher)

    def _wait(self) -> bool:
        """Sleep until a message comes; False where none came for a while, and the thread is given up."""
        if self._bell.acquire(timeout=LINGER_S):
            return True
        with self.mutex:
            if self._messages:
                return True
            self._thread = None
            return False

    def _end(self, error: BaseException) -> None:
        """Nothing is answered from now on."""
        with self.mutex:
            if self._is_closed:
                return
            self._is_closed = True
            self._thread = None
        self.batcher.fail_all(error)
        self.batcher.close()
        while self._messages:
            self._messages.popleft().refuse(_was_closed())


def _was_closed() -> KaiwaError:
    return KaiwaError("the model was closed", hint="load it again with kaiwa.LLM(…)")


_open_loops: weakref.WeakSet[Loop] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loop in tuple(_open_loops):
        loop.close()
