"""The supervisor of a child process: starts it, hands out what it sends, and starts it again when it crashes."""

from __future__ import annotations

import copy
import enum
import logging
import signal
import threading
from collections.abc import Iterable, Sequence

from kaiwa.errors import Cancelled, EngineCrashed, KaiwaError
from kaiwa.runtime.pool.admission import Admission, Alone
from kaiwa.runtime.process.calls import Call
from kaiwa.runtime.process.child import OTHER_VERSION_EXIT_CODE, PATIENCE_S, Child, words_for
from kaiwa.runtime.process.wire import (
    VERSION,
    Close,
    End,
    Failed,
    Loading,
    NotLoaded,
    Planned,
    Proceed,
    Ready,
    Reply,
    Start,
    Stop,
    Value,
)

BACK_OFF_S = (0.0, 0.5, 2.0, 8.0)
"""How long a model rests before it starts again: after its first crash, its second, and so on. Then it is given up.

An answer that comes to its end sets the count back.
"""
_POLL_S = 0.1

_log = logging.getLogger(__name__)


class State(enum.Enum):
    """What becomes of a model's process; `NEXT` says in which order."""

    STARTING = "starting"
    READY = "ready"
    LOST = "lost"
    """It crashed too often in a row."""
    CLOSED = "closed"


NEXT: dict[State, frozenset[State]] = {
    State.STARTING: frozenset({State.READY, State.LOST, State.CLOSED}),
    State.READY: frozenset({State.STARTING, State.CLOSED}),
    State.LOST: frozenset({State.CLOSED}),
    State.CLOSED: frozenset(),
}


class Supervisor:
    """One model's process, and the calls that are made of it."""

    ready: Ready
    """What the process said of the model."""

    def __init__(self, start: Start, back_off_s: Sequence[float]) -> None:
        self.state = State.STARTING
        self._start = start
        self._back_off_s = back_off_s
        self._num_crashes = 0
        self._problem: Exception = _closed()
        """Why nothing is answered any more."""
        self._child: Child | None = None
        self._calls: dict[int, Call] = {}
        self._mutex = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kaiwa-process", daemon=True)
        self._admission: Admission

    @property
    def pid(self) -> int:
        """The number of the process that is there, or was last."""
        assert self._child is not None
        return self._child.pid

    def begin(self, admission: Admission) -> None:
        """Start the process, and wait until the model is loaded. Raises what its load raises, or `EngineCrashed`."""
        self._admission = admission
        self._child = self._launch(admission)
        self._become(State.READY)
        self._thread.start()

    def submit(self, call: Call) -> None:
        """Let a call be answered: now, or when the process is there again. Raises what `channel.pack` raises."""
        with self._mutex:
            if self.state in (State.LOST, State.CLOSED):
                raise copy.copy(self._problem)
            if self.state is State.READY:
                self.send(call.ask)
            self._calls[call.ask.number] = call

    def send(self, message: object) -> None:
        """Send something to the process if it is there. Never waits, and takes no lock."""
        if self.state is State.READY and self._child is not None:
            self._child.send(message)

    def close(self) -> None:
        """End the process and all calls. Twice is once."""
        with self._mutex:
            if self.state is State.CLOSED:
                return
            self._become(State.CLOSED)
            self._problem = _closed()
            self._is_closing.set()
            child, calls = self._child, self._take_calls()
        _fail(calls, self._problem)
        if child is not None:
            child.send(Close())
        self._thread.join(PATIENCE_S)
        if child is not None and self._thread.is_alive():
            child.end()
        self._thread.join()

    def _run(self) -> None:
        """A thread: one process after the other, until the model is closed or given up."""
        child = self._child
        while child is not None:
            self._hand_out(child)
            exit_code = child.reap()
            if (calls := self._calls_of_crashed()) is None:
                return
            error = self._crash("in the middle of an answer" if calls else "while it did nothing", exit_code)
            error.hint = f"it starts again by itself, so ask again; {error.hint}"
            _log.warning("%s: it starts again", error)
            _fail(calls, error)
            child = self._start_again(error)

    def _hand_out(self, child: Child) -> None:
        """Give every call what comes for it, until nothing comes any more."""
        while (replies := self._receive(child)) is not None:
            for reply in replies:
                self._hand_over(reply)

    def _receive(self, child: Child) -> list[Reply] | None:
        """What comes next; None at the end, or where it cannot be read: then start anew, or all would wait for ever."""
        try:
            return child.receive()
        except Exception:  # noqa: BLE001  whatever a class raises when it is put together
            _log.exception("the process of %s sent something that cannot be read", self._start.options["model"])
            child.end()
            return None

    def _hand_over(self, reply: Reply) -> None:
        if isinstance(reply, End | Value | Failed):
            call = self._calls.pop(reply.number, None)
            self._num_crashes = 0
        else:
            call = self._calls.get(reply.number)
        if call is not None:
            call.put(reply)

    def _calls_of_crashed(self) -> list[Call] | None:
        """What the process was to answer, if it ended by itself. Calls that come from now on wait for the next."""
        with self._mutex:
            if self.state is State.CLOSED:
                return None
            self._become(State.STARTING)
            self._num_crashes += 1
            return self._take_calls()

    def _start_again(self, error: Exception) -> Child | None:
        while self._num_crashes <= len(self._back_off_s):
            if self._is_closing.wait(self._back_off_s[self._num_crashes - 1]):
                return None
            try:
                return self._replace(self._launch(_Restart(self._is_closing)))
            except Cancelled:
                return None
            except Exception as problem:  # noqa: BLE001  whoever waits gets it, if nothing else helps
                error = problem
                self._num_crashes += 1
                _log.warning("%s: it is tried again", error)
        self._give_up(error)
        return None

    def _replace(self, child: Child) -> Child:
        """Take a new process in use, and send it what came meanwhile."""
        with self._mutex:
            if self.state is State.CLOSED:
                child.kill()
                raise _stopped()
            self._child = child
            self._become(State.READY)
            for call in self._calls.values():
                child.send(call.ask)
                if call.is_over:  # whoever asked has left meanwhile, perhaps before there was somebody to tell
                    child.send(Stop(call.ask.number, is_quiet=True))
        return child

    def _give_up(self, error: Exception) -> None:
        with self._mutex:
            if self.state is State.CLOSED:
                return
            self._become(State.LOST)
            self._problem = error
            calls = self._take_calls()
        _log.error("%s: it is given up after %d attempts", error, self._num_crashes)
        _fail(calls, error)
        self._admission.lost(error)

    def _launch(self, admission: Admission) -> Child:
        """A process that has loaded the model."""
        child = Child()
        try:
            child.send(self._start)
            while True:
                admission.check()
                if (messages := child.receive(_POLL_S)) is None:
                    raise self._crash("while it loaded the model", child.reap())
                for message in messages:
                    match message:
                        case Loading():
                            admission.report(message.progress)
                        case Planned():
                            admission.admit(message.num_bytes)
                            child.send(Proceed())
                        case NotLoaded():
                            raise message.error
                        case Ready():
                            self.ready = message
                            return child
        except BaseException:
            child.kill()
            raise

    def _become(self, state: State) -> None:
        """The one place where states change."""
        assert state in NEXT[self.state], f"a process cannot become {state.value} while it is {self.state.value}"
        self.state = state

    def _take_calls(self) -> list[Call]:
        """All calls, which are no longer known. The mutex is held."""
        calls, self._calls = list(self._calls.values()), {}
        return calls

    def _crash(self, moment: str, exit_code: int) -> KaiwaError:
        name = self._start.options["model"]
        if exit_code == OTHER_VERSION_EXIT_CODE:
            return KaiwaError(
                f"Kaiwa was changed on disk while this program runs, which is version {VERSION.partition('/')[0]}",
                hint="start the program again",
            )
        return EngineCrashed(
            f"the process of {name} {words_for(exit_code)} {moment}", hint=_advice(exit_code), exit_code=exit_code
        )


class _Restart(Alone):
    """The admission of a model that had its place before, until it is closed."""

    def __init__(self, is_closing: threading.Event) -> None:
        super().__init__()
        self._is_closing = is_closing

    def check(self) -> None:
        if self._is_closing.is_set():
            raise _stopped()


def _fail(calls: Iterable[Call], error: Exception) -> None:
    for call in calls:
        call.put(Failed(call.ask.number, copy.copy(error)))


def _advice(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return (
            "the system does that where memory runs out: load the model with a shorter context_length, or with "
            'quantization="int4"'
        )
    return "what it wrote to standard error says more"


def _closed() -> KaiwaError:
    return KaiwaError("the model was closed", hint="load it again")


def _stopped() -> Cancelled:
    return Cancelled("the model was closed while it started again")
