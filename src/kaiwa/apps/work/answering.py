"""Answering a question: the answer goes into the log, and to the app that waits for it. Works while the app is busy."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kaiwa.apps.content.uploaded import element_of
from kaiwa.apps.protocol.commands import Answer
from kaiwa.apps.protocol.events import Answered, ElementAdded, Event, MessageAdded
from kaiwa.apps.protocol.records import Ask, Message, TextPart
from kaiwa.apps.storage.entries import Entry, KeepFile, KeepText
from kaiwa.apps.work.session import Session
from kaiwa.errors import Refused


def answer(session: Session, given: Answer, files: Sequence[KeepFile], *, author: str) -> None:
    """Answer a question of this chat. Raises `Refused` where it is open no longer, or wants something else."""
    ask = session.asks.find(given.ask_id)
    if ask is not None:
        _check_files(ask, files)
    pending = session.asks.take_for(given)
    session.is_used = True
    session.emit(*_told(pending.ask, given, files, author))
    pending.answer.set_result(given)


def _told(ask: Ask, given: Answer, files: Sequence[KeepFile], author: str) -> list[Event | Entry]:
    """What pages see of an answer: a message where it is text, a summary else."""
    if ask.kind == "text":
        text = given.text or ""
        parts = (TextPart(text=text),)
        said = Message(id=given.id, role="user", author=author, parts=parts, created_at=time.time())
        return [Answered(ask_id=ask.id, outcome="answered"), MessageAdded(message=said), KeepText(said.id, text)]
    summary = ""
    if ask.kind == "action":
        summary = next(action.label for action in ask.actions if action.id == given.action_id)
    elif ask.kind == "file":
        summary = ", ".join(file.name for file in files)
    shown = [ElementAdded(element=element_of(file, ask.message_id)) for file in files]
    return [*shown, Answered(ask_id=ask.id, outcome="answered", summary=summary)]


def _check_files(ask: Ask, files: Sequence[KeepFile]) -> None:
    for file in files:
        if file.num_bytes > ask.max_bytes:
            raise Refused(
                "too_large",
                f"{file.name} has {file.num_bytes / 1e6:,.1f} MB, and the question takes {ask.max_bytes / 1e6:,.1f}",
            )
