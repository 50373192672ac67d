"""Waiting for a model: a bar where waiting is long enough to see one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from kaiwa.events import Progress

Model = TypeVar("Model")

PATIENCE_S = 0.4
"""A load that takes no longer shows nothing."""
FRAME_S = 0.1
STAGES = {
    "choose": "looking up",
    "waiting": "waiting for another process",
    "download": "downloading",
    "quantize": "quantizing",
    "load": "loading",
}


def load(work: Callable[[Callable[[Progress], None]], Model], *, meanwhile: Callable[[], None] | None = None) -> Model:
    """What `work` returns, which is called with a function that takes `Progress` events.

    It runs in a thread of its own, so that `meanwhile` can happen beside it and Ctrl-C ends the wait at once. The bar
    is on standard error, and only where that is a terminal. Raises whatever `work` raises.
    """
    loading = Loading(work)
    if meanwhile is not None:
        meanwhile()
    if not loading.wait(PATIENCE_S) and sys.stderr.isatty():
        _show_bar(loading)
    loading.wait(None)
    return loading.result()


class Loading(Generic[Model]):
    """Work that has begun in a thread, and how far it has come."""

    def __init__(self, work: Callable[[Callable[[Progress], None]], Model]) -> None:
        self.progress: Progress | None = None
        self._work = work
        self._results: list[Model] = []
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kaiwa-loading", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None) -> bool:
        """Whether the work is done, after at most so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Model:
        """What the work returned, or the error that ended it."""
        if self._problem is not None:
            raise self._problem
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work(self._report))
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            self._problem = error

    def _report(self, progress: Progress) -> None:
        self.progress = progress
        if progress.detail:
            print(progress.detail, file=sys.stderr)


def _show_bar(loading: Loading[Model]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    name, bar, left = TextColumn("{task.description}", style="dim"), BarColumn(), TimeRemainingColumn()
    counts = {"bytes": DownloadColumn(), "tensors": MofNCompleteColumn()}
    stage = ""
    while not loading.wait(FRAME_S):
        if loading.progress is None:
            continue
        unit, stage = loading.progress.unit, loading.progress.stage
        with Bars(name, bar, counts[unit], left, console=console, transient=True) as bars:
            task = bars.add_task(STAGES.get(stage, stage), total=None)
            while not loading.wait(FRAME_S) and loading.progress.stage == stage:
                bars.update(task, completed=loading.progress.done, total=loading.progress.total or None)
