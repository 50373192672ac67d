"""The watchdog: notices when an app's code holds up the app's loop, and says where and what to do about it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from kaiwa.apps.app_code import is_of_the_app, line_of
from kaiwa.apps.work.handler_loop import HandlerLoop

MAX_BLOCKED_S = 0.1
_BEAT_S = 0.05
_ADVICE = (
    "everybody who talks to this app waits for it. Put what takes long into a thread, "
    "`await asyncio.to_thread(function, …)`, or write the hook as `def` instead of `async def`; "
    "load a model once, with kw.Model or in a function under @kw.cache"
)

_logger = logging.getLogger("kaiwa.apps")


class Watchdog:
    """A thread that asks the loop for a sign of life while the app's functions are at work.

    `on_busy` is called with True when the loop is blocked, and with False when it is free again.
    """

    def __init__(self, loop: HandlerLoop, on_busy: Callable[[bool], None]) -> None:
        self._loop = loop
        self._on_busy = on_busy
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kaiwa-watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_BEAT_S):
            if self._loop.num_at_work:
                self._await_sign_of_life()

    def _await_sign_of_life(self) -> None:
        alive = threading.Event()
        asked_at = time.monotonic()
        self._loop.post(alive.set)
        if alive.wait(MAX_BLOCKED_S):
            return
        where = self._culprit()
        if where is None or alive.is_set():
            return
        _logger.warning("%s has blocked the app for more than %.0f ms: %s", where, MAX_BLOCKED_S * 1000, _ADVICE)
        self._on_busy(True)
        while not alive.wait(_BEAT_S) and not self._is_over.is_set():
            pass
        self._on_busy(False)
        _logger.warning("%s blocked the app for %.1f s", where, time.monotonic() - asked_at)

    def _culprit(self) -> str | None:
        """The innermost line of the app's own code that the loop's thread is in: `file:line, in function`.

        None where the loop runs nothing: then it waits for work, or as all others for a processor that is free.
        """
        frames = list(_stack(sys._current_frames().get(self._loop.thread.ident or 0)))
        if not any(frame.f_code is asyncio.Handle._run.__code__ for frame in frames):
            return None
        frame = next(filter(is_of_the_app, frames), frames[0])
        return f"{line_of(frame, frame.f_lineno)},"


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that it was called from."""
    while frame is not None:
        yield frame
        frame = frame.f_back
