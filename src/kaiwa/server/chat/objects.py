"""What `/v1/chat/completions` gives, for the documentation: the answers themselves are written by `answer`."""

from __future__ import annotations

from typing import Any, Literal

from kaiwa.server.described import Described


class PromptTokensDetails(Described):
    """Where the tokens of a prompt came from."""

    cached_tokens: int


class CompletionTokensDetails(Described):
    """What the tokens of an answer are."""

    reasoning_tokens: int


class CompletionUsage(Described):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class AnswerMessage(Described):
    """The turn that the model wrote."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class Choice(Described):
    """One of the answers."""

    index: int
    message: AnswerMessage
    logprobs: dict[str, Any] | None
    finish_reason: Literal["stop", "length", "tool_calls"]


class ChatCompletion(Described):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    service_tier: Literal["default"]
    system_fingerprint: None
