"""chat_context: what was said in this chat so far, in the words of a model."""

from __future__ import annotations

from typing import Any, cast

from kaiwa.apps.content.message import Message
from kaiwa.apps.context import current

_ROLES = {"user_message": "user", "assistant_message": "assistant", "system_message": "system"}


class ChatContext:
    """The messages of the chat that the calling code belongs to."""

    def get(self) -> list[Message]:
        """All messages, in order."""
        return [cast(Message, said) for said in current().session.history]

    def add(self, message: Message) -> Message:
        """Add a message that is not shown."""
        current().session.history.append(message)
        return message

    def remove(self, message: Message) -> bool:
        """Forget a message; whether it was there."""
        session = current().session
        kept = [said for said in session.history if said.id != message.id]
        was_there = len(kept) < len(session.history)
        session.history = list(kept)
        return was_there

    def clear(self) -> None:
        """Forget all messages; pages show them still."""
        current().session.history = []

    def to_openai(self) -> list[dict[str, Any]]:
        """The messages as `{"role": …, "content": …}`, without those that are empty or tell of an error."""
        return [
            {"role": _ROLES[message.type], "content": message.content}
            for message in self.get()
            if message.role != "error" and message.content
        ]


chat_context = ChatContext()
