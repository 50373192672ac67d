"""Pending questions of one chat, and who is answered. Threads of pages answer; the app's loop waits."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from kaiwa.apps.protocol.commands import Answer
from kaiwa.apps.protocol.records import Ask
from kaiwa.errors import Refused


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that nobody has answered yet."""

    ask: Ask
    answer: Future[Answer] = field(default_factory=Future)


class Asks:
    """Questions by id. Each is answered once; what comes later is refused."""

    def __init__(self) -> None:
        self._pending: dict[str, Pending] = {}
        self._lock = threading.Lock()

    def add(self, ask: Ask) -> Pending:
        """A new question."""
        pending = Pending(ask)
        with self._lock:
            self._pending[ask.id] = pending
        return pending

    def find(self, ask_id: str) -> Ask | None:
        """The question, where it still waits."""
        with self._lock:
            pending = self._pending.get(ask_id)
        return None if pending is None else pending.ask

    def take(self, ask_id: str) -> Pending | None:
        """Take a question away, to answer it or to give it up. None where somebody else was faster."""
        with self._lock:
            return self._pending.pop(ask_id, None)

    def take_for(self, answer: Answer) -> Pending:
        """Take the question that this answers. Raises `Refused` where it is open no longer, or wants another answer."""
        ask = self.find(answer.ask_id)
        if ask is not None:
            _check(ask, answer)
        pending = self.take(answer.ask_id)
        if pending is None:
            raise Refused("too_late", "this question is not open any more", hint="say it as a message instead")
        return pending

    def __len__(self) -> int:
        with self._lock:
            return len(self._pending)


_WANTED = {"text": "text", "file": "file_ids", "action": "action_id", "element": "values"}


def _check(ask: Ask, answer: Answer) -> None:
    wanted = _WANTED[ask.kind]
    given = [name for name in _WANTED.values() if getattr(answer, name) is not None]
    if given != [wanted]:
        raise Refused(
            "invalid", f"this question is answered with {wanted}, not with {' and '.join(given) or 'nothing'}"
        )
    if ask.kind == "action" and answer.action_id not in {action.id for action in ask.actions}:
        raise Refused("invalid", f"this question has no action {answer.action_id!r}")
    if ask.kind == "file" and not 1 <= len(answer.file_ids or ()) <= ask.max_files:
        raise Refused("invalid", f"this question takes 1 to {ask.max_files} files, not {len(answer.file_ids or ())}")
