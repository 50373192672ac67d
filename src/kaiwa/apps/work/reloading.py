"""Reading an app's code again when it changes. Chats, sessions and loaded models stay as they are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from kaiwa.apps.definition import Definition
from kaiwa.apps.protocol.frames import Reloaded
from kaiwa.apps.protocol.records import Problem
from kaiwa.apps.work.service import Service
from kaiwa.errors import InvalidApp

POLL_S = 0.4
SETTLE_S = 0.05
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__"})

_logger = logging.getLogger("kaiwa.apps")


class Watcher:
    """A thread that looks at the Python files beside an app's."""

    def __init__(self, path: Path, reload: Callable[[], Definition], service: Service) -> None:
        self._folder = path.resolve().parent
        self._reload = reload
        self._service = service
        self._seen = self._look()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kaiwa-reload", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no longer."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            seen = self._look()
            if seen == self._seen:
                continue
            while seen != (seen := self._look()):  # until whoever writes has written all
                self._is_over.wait(SETTLE_S)
            self._seen = seen
            self._read_again()

    def _read_again(self) -> None:
        try:
            app = self._reload()
        except InvalidApp as error:
            _logger.error("the app stays as it was: %s", error)
            problem = Problem(code="failed", message=str(error), hint=error.hint)
            self._service.post_to_all(Reloaded(problem=problem))
            return
        self._service.take_in(app)
        self._service.loop.submit(self._service.calling.tell("on_app_startup"))
        _logger.warning("the app was read again")
        self._service.post_to_all(Reloaded())

    def _look(self) -> dict[Path, int]:
        """When each file was last written."""
        seen = {}
        for path in self._folder.rglob("*.py"):
            parts = path.relative_to(self._folder).parts
            if not any(part in _SKIPPED or part.startswith(".") for part in parts):
                try:
                    seen[path] = path.stat().st_mtime_ns
                except FileNotFoundError:
                    continue  # an editor writes a new file and renames it
        return seen
