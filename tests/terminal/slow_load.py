"""A load that takes its time, with progress: `python slow_load.py`."""

from __future__ import annotations

import time
from collections.abc import Callable

from kaiwa.events import Progress
from kaiwa.terminal.loading import load


def work(on_progress: Callable[[Progress], None]) -> str:
    """Download for two seconds, then load for one."""
    for step in range(20):
        on_progress(Progress("download", step * 5_000_000, 100_000_000))
        time.sleep(0.1)
    for step in range(10):
        on_progress(Progress("load", step, 10, "tensors"))
        time.sleep(0.1)
    return "here it is"


if __name__ == "__main__":
    print(load(work))
