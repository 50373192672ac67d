"""A whole chat as plain data, in the words of Chainlit's ThreadDict: what `on_chat_resume` is called with."""

from __future__ import annotations

from typing import Any

from kaiwa.apps.content.chat_settings import plain
from kaiwa.apps.protocol.records import Chat, Message, Step
from kaiwa.apps.storage.catalog import text_of
from kaiwa.apps.work.chat_state import ChatState
from kaiwa.apps.work.session import Session


def thread_of(session: Session, chat: Chat | None, state: ChatState) -> dict[str, Any]:
    """The chat with its messages and steps, oldest first."""
    said = {message_id: message for message_id, message in state.messages.items() if message.state != "queued"}
    by_id: dict[str, Message | Step] = {**said, **state.steps}
    things = [by_id[thing_id] for thing_id in state.order if thing_id in by_id]
    return {
        "id": session.chat_id,
        "name": chat.title if chat else "",
        "createdAt": chat.created_at if chat else None,
        "userId": session.user.identifier if session.user else None,
        "userIdentifier": session.user.identifier if session.user else None,
        "tags": [],
        "metadata": {"chat_profile": session.profile, "chat_settings": plain(session.settings)},
        "steps": [message_dict(thing) if isinstance(thing, Message) else step_dict(thing) for thing in things],
        "elements": [element.model_dump() for element in state.elements.values()],
    }


def message_dict(message: Message) -> dict[str, Any]:
    """A message as one of Chainlit's steps."""
    return {
        "id": message.id,
        "parentId": message.parent_id,
        "name": message.author,
        "type": f"{message.role}_message",
        "output": text_of(message),
        "createdAt": message.created_at,
        "command": message.command,
        "metadata": message.metadata,
        "tags": list(message.tags),
        "isError": message.role == "error",
    }


def step_dict(step: Step) -> dict[str, Any]:
    """A step, in the same words."""
    return {
        "id": step.id,
        "parentId": step.parent_id,
        "name": step.name,
        "type": step.type,
        "input": step.input,
        "output": step.output,
        "createdAt": step.started_at,
        "start": step.started_at,
        "end": step.ended_at,
        "metadata": step.metadata,
        "tags": list(step.tags),
        "isError": step.state == "failed",
    }
