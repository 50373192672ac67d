"""Events: what a model's answer is made of while it is being written.

Every event has `.text`, empty where it carries none, so that the simplest loop is enough:

    for event in llm.stream("Hello"):
        print(event.text, end="")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

FinishReason = Literal["stop", "length", "cancelled", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. `cached_tokens` of the `prompt_tokens` were already computed and not read again."""

    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    reasoning_tokens: int = 0
    """Those of the `generated_tokens` that are thoughts."""

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt_tokens + self.generated_tokens


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, as measured from the moment the request was made."""

    first_token_s: float
    prompt_s: float
    decode_s: float
    prompt_tokens_per_s: float
    """Newly read prompt tokens per second; 0 where none had to be read."""
    decode_tokens_per_s: float
    """Tokens after the first, per second; 0 for an answer of one token."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token, the bytes that it stands for, and the natural logarithm of its probability."""

    token_id: int
    token: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs(TokenLogprob):
    """The token that was chosen, and the most probable ones in its place, the best first."""

    best: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer; never part of a character.

    `logprobs` are of the tokens that it is made of, where they were asked for.
    """

    text: str
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what the model thinks before it answers."""

    reasoning: str
    text: Literal[""] = ""
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model begins to call a tool. `index` counts the calls of one answer from 0."""

    index: int
    id: str
    name: str
    text: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next piece of a call's arguments. All pieces of one `index`, joined, are the JSON text of an object."""

    index: int
    arguments: str
    text: Literal[""] = ""
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for, when it is whole. `arguments` is the parsed JSON object."""

    name: str
    arguments: Any
    id: str = ""
    index: int = 0
    text: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave, as the model reads it. `is_error` says that the tool failed, and `content` how."""

    name: str
    content: str
    call_id: str
    is_error: bool = False
    text: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class BrokenToolCall:
    """What begins as a call and is none: the text as the model wrote it, shown like any other, and the reason.

    `index` is that of the `ToolCallStarted` that it takes back, or None where there was none.
    """

    text: str
    reason: str
    index: int | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(frozen=True, slots=True)
class Queued:
    """The request waits for others; it is the `place`-th in the queue, where 1 comes next."""

    place: int
    text: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of the prompt has been read, in tokens, `cached_tokens` included."""

    read_tokens: int
    prompt_tokens: int
    cached_tokens: int
    text: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every answer."""

    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    text: Literal[""] = ""
    stop_string: str = ""
    """The one of `stop` that ended the answer."""


Event = (
    TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCall
    | BrokenToolCall
    | ToolResult
    | Queued
    | PromptProgress
    | Finished
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    text: str
    finish_reason: FinishReason
    usage: Usage
    timings: Timings
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A long task's progress. `stage` is what is being done ("download", "load"); `done` of `total` in `unit`s.

    `detail` is a sentence for people where there is something to say.
    """

    stage: str
    done: int
    total: int
    unit: Literal["bytes", "tensors"] = "bytes"
    detail: str = ""
