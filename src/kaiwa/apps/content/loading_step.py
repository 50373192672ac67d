"""A step that shows how a model loads, to a chat that waits for it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from kaiwa.apps.content.step import Step
from kaiwa.apps.context import current
from kaiwa.apps.languages import in_language
from kaiwa.events import Progress

MAX_PER_S = 10
"""So often is progress told; a bar moves no smoother."""


class LoadingStep:
    """A step for the length of a `with` block; where it is not shown, nothing."""

    def __init__(self, name: str, *, is_shown: bool) -> None:
        self._step = Step(_title(name), type="llm") if is_shown else None
        self._next_at = 0.0
        self._stage = ""

    def show(self, progress: Progress) -> None:
        """Tell how far it is. In the app's loop."""
        now = time.monotonic()
        if self._step is None or (progress.stage == self._stage and now < self._next_at):
            return
        self._next_at = now + 1 / MAX_PER_S
        self._stage = progress.stage
        self._step.progress(progress.done, progress.total, stage=progress.stage, unit=progress.unit)

    def __enter__(self) -> Self:
        if self._step is not None:
            self._step.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._step is not None:
            self._step.__exit__(kind, error, traceback)


def _title(name: str) -> str:
    return in_language({"en": f"Load {name}", "ja": f"{name} をロード"}, current().session.language)
