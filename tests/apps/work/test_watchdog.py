from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kaiwa.apps.work.handler_loop import HandlerLoop
from kaiwa.apps.work.watchdog import MAX_BLOCKED_S, Watchdog


class FarLoop(HandlerLoop):
    """A loop that hears late of everything, as on a machine whose processors are all at work."""

    def post(self, function: Callable[..., object], *arguments: Any) -> None:
        threading.Timer(3 * MAX_BLOCKED_S, super().post, [function, *arguments]).start()


def test_a_loop_that_only_waits_for_a_processor_is_blamed_on_nobody(caplog: pytest.LogCaptureFixture) -> None:
    busy: list[bool] = []
    loop = FarLoop()
    watchdog = Watchdog(loop, busy.append)
    with caplog.at_level(logging.WARNING, "kaiwa.apps"):
        loop.submit(loop.call(asyncio.sleep, 6 * MAX_BLOCKED_S)).result(10)
    watchdog.close()
    loop.close()
    time.sleep(3 * MAX_BLOCKED_S)  # for the last timer to end
    assert (busy, caplog.records) == ([], [])
