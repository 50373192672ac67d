"""The catalog: what the list of chats says of each, as it follows from what happens in it."""

from __future__ import annotations

import time

from kaiwa.apps.protocol.events import Answered, Asked, Event, MessageAdded, RunFinished, RunStarted
from kaiwa.apps.protocol.records import Chat, Message, TextPart

MAX_TITLE_CHARS = 80


def text_of(message: Message) -> str:
    """What a message says, without what its model thought or called."""
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def title_of(text: str) -> str:
    """The first line that says something, shortened at a word."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(line) <= MAX_TITLE_CHARS:
        return line
    head = line[:MAX_TITLE_CHARS]
    return (head.rpartition(" ")[0] or head) + "…"


def after(event: Event, chat: Chat) -> Chat:
    """The row after an event."""
    match event:
        case MessageAdded(message=message) if message.role == "user":
            return chat.model_copy(
                update={
                    "title": chat.title or title_of(text_of(message)),
                    "num_messages": chat.num_messages + 1,
                    "updated_at": time.time(),
                    "run_state": "queued" if chat.run_state == "idle" and message.state == "queued" else chat.run_state,
                }
            )
        case RunStarted() | Answered():
            return chat.model_copy(update={"run_state": "running"})
        case Asked():
            return chat.model_copy(update={"run_state": "asking"})
        case RunFinished():
            return chat.model_copy(update={"run_state": "idle"})
    return chat
