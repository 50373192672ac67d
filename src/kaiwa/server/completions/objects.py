"""What `/v1/completions` gives, for the documentation: the answers themselves are written by `answer`."""

from __future__ import annotations

from typing import Literal

from kaiwa.server.chat.objects import CompletionUsage
from kaiwa.server.described import Described


class CompletionLogprobs(Described):
    """Four lists with an entry for each token."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(Described):
    """One of the answers."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"]


class Completion(Described):
    """A whole answer."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    system_fingerprint: None
