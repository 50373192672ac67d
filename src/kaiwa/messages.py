"""Messages: one turn of a conversation each, as models and people exchange them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kaiwa.errors import InvalidMessages, did_you_mean

Role = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `content` is plain text; `extra` holds what templates may also read (tool_calls, name, …)."""

    role: Role
    content: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The turn in the words of the OpenAI API: `{"role": …, "content": …}`."""
        return {"role": self.role, "content": self.content, **self.extra}


Conversation = str | Sequence[Message | Mapping[str, Any]]
"""What a person may hand over: a single question, or the turns so far."""


def normalize(conversation: Conversation) -> list[Message]:
    """Check a conversation and return its messages.

    A string becomes one user message. Content may be a string, null (an assistant that only calls tools) or a list
    of `{"type": "text", "text": …}` parts, which are joined.

    Raises `InvalidMessages` with the index of the first message that is wrong.
    """
    if isinstance(conversation, str):
        return [Message("user", conversation)]
    if not isinstance(conversation, Iterable) or isinstance(conversation, Mapping):
        raise InvalidMessages(
            f"a conversation is text or a list of messages, not {type(conversation).__name__}",
            hint='pass [{"role": "user", "content": "…"}]',
        )
    messages = [_normalize_one(index, message) for index, message in enumerate(conversation)]
    if not messages:
        raise InvalidMessages("the conversation is empty", hint="pass at least one message")
    return messages


def _normalize_one(index: int, message: object) -> Message:
    if isinstance(message, Message):
        return message
    if not isinstance(message, Mapping):
        raise InvalidMessages(f"message {index} is a {type(message).__name__}, not a dictionary with role and content")
    role = message.get("role")
    if role not in ROLES:
        raise InvalidMessages(
            f"message {index} has the role {role!r}",
            hint=did_you_mean(str(role), ROLES),
        )
    extra = {key: value for key, value in message.items() if key not in ("role", "content")}
    return Message(role, _text_of(index, message), extra)


def _text_of(index: int, message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None and message.get("tool_calls"):
        return ""
    if isinstance(content, Sequence) and content and not isinstance(content, (bytes, bytearray)):
        parts = []
        for part in content:
            if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
                kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
                raise InvalidMessages(
                    f"message {index} has a content part of type {kind!r}; this model reads text only",
                    hint='every part must be {"type": "text", "text": "…"}',
                )
            parts.append(part["text"])
        return "".join(parts)
    raise InvalidMessages(
        f"message {index} ({message.get('role')}) has the content {content!r}",
        hint="content must be text",
    )
