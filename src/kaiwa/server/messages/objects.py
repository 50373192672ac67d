"""What `/v1/messages` gives, for the documentation: the answers themselves are written by `answer`."""

from __future__ import annotations

from typing import Any, Literal

from kaiwa.server.described import Described


class MessageUsage(Described):
    """Token counts; `input_tokens` are those that were read anew."""

    input_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    output_tokens: int


class AnswerBlock(Described):
    """A part of an answer."""

    type: Literal["text", "thinking", "tool_use"]
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class AnthropicMessage(Described):
    """A whole answer."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[AnswerBlock]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]
    stop_sequence: str | None
    usage: MessageUsage


class TokenCount(Described):
    """How long a conversation is."""

    input_tokens: int
