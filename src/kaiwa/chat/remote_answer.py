"""The answer of a server that speaks OpenAI's API: its chunks made into events. No I/O."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from kaiwa.errors import RemoteFailed
from kaiwa.events import (
    BrokenToolCall,
    Event,
    Finished,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    Timings,
    TokenLogprob,
    TokenLogprobs,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)

_REASONS: Mapping[str, FinishReason] = {
    **{reason: reason for reason in get_args(FinishReason)},
    "function_call": "tool_calls",
    "eos": "stop",
    "max_tokens": "length",
}
_DONE = "[DONE]"
_UNKNOWN_ID = -1


@dataclass(slots=True)
class _Call:
    """A tool call that is being written."""

    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class Answer:
    """One answer in the making: `push` the data of each event of the connection, then `finish`.

    Where a server counts no tokens, the pieces that came are counted instead.
    """

    def __init__(self, asked_at: float | None = None) -> None:
        self.is_done = False
        """Whether the server has said that nothing follows."""
        self.has_begun = False
        """Whether anything of the answer came, so that asking again would say it twice."""
        self._asked_at = time.perf_counter() if asked_at is None else asked_at
        self._first_at = self._last_at = 0.0
        self._num_pieces = 0
        self._calls: dict[int, _Call] = {}
        self._reason: FinishReason | None = None
        self._usage: Usage | None = None
        self._speeds: Mapping[str, Any] = {}

    def push(self, data: str) -> list[Event]:
        """The events of one event of the connection. Raises `RemoteFailed` for what is no chunk, or tells an error."""
        if data.strip() == _DONE:
            self.is_done = True
            return []
        try:
            chunk = json.loads(data)
        except ValueError:
            raise RemoteFailed(f"the server sent something that is no JSON: {data[:200]!r}") from None
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise RemoteFailed(f"the server broke off: {_words(chunk)}", hint="its log may say why")
        self._note_usage(chunk)
        return [event for choice in chunk.get("choices") or () for event in self._choice(choice)]

    def finish(self, reason: FinishReason | None = None) -> list[Event]:
        """The last events: calls that are now whole, and how it ended. `reason` is ours, where we ended it."""
        events: list[Event] = [] if reason else [_whole(index, call) for index, call in sorted(self._calls.items())]
        ended = reason or self._reason or "stop"
        usage = self._usage or Usage(0, 0, self._num_pieces)
        return [*events, Finished(ended, usage, self._timings(usage))]

    @property
    def is_whole(self) -> bool:
        """Whether the server has said how the answer ended."""
        return self.is_done or self._reason is not None

    def _choice(self, choice: Mapping[str, Any]) -> list[Event]:
        if choice.get("index", 0) != 0:
            return []
        delta = choice.get("delta") or choice.get("message") or {}
        logprobs = _logprobs(choice.get("logprobs"))
        events: list[Event] = []
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            events.append(ReasoningDelta(reasoning, logprobs=logprobs))
        text = delta.get("content") or choice.get("text") or delta.get("refusal")
        if isinstance(text, str) and text:
            events.append(TextDelta(text, logprobs=logprobs))
        for piece in delta.get("tool_calls") or ():
            events += self._call(piece)
        if events:
            self._note_time()
        if reason := choice.get("finish_reason"):
            self._reason = _REASONS.get(reason, "stop")
        return events

    def _call(self, piece: Mapping[str, Any]) -> list[Event]:
        index = piece.get("index", len(self._calls))
        function = piece.get("function") or {}
        events: list[Event] = []
        if index not in self._calls:
            call = self._calls[index] = _Call(piece.get("id") or f"call_{index}", function.get("name") or "")
            events.append(ToolCallStarted(index, call.id, call.name))
        arguments = function.get("arguments")
        if arguments:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            self._calls[index].arguments.append(text)
            events.append(ToolCallDelta(index, text))
        return events

    def _note_time(self) -> None:
        self._last_at = time.perf_counter()
        self._first_at = self._first_at or self._last_at
        self.has_begun = True
        self._num_pieces += 1

    def _note_usage(self, chunk: Mapping[str, Any]) -> None:
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            details = usage.get("prompt_tokens_details") or {}
            self._usage = Usage(
                int(usage.get("prompt_tokens") or 0),
                int(details.get("cached_tokens") or 0),
                int(usage.get("completion_tokens") or 0),
            )
        if isinstance(chunk.get("timings"), dict):  # llama-server measures itself
            self._speeds = chunk["timings"]

    def _timings(self, usage: Usage) -> Timings:
        """As seen from here, the network included, unless the server says what it measured."""
        if not self._first_at:
            return Timings(0.0, 0.0, 0.0, 0.0, 0.0)
        first_s, decode_s = self._first_at - self._asked_at, self._last_at - self._first_at
        new_tokens, more_tokens = usage.prompt_tokens - usage.cached_tokens, usage.generated_tokens - 1
        prompt_rate = new_tokens / first_s if first_s > 0 else 0.0
        decode_rate = more_tokens / decode_s if decode_s > 0 and more_tokens > 0 else 0.0
        return Timings(
            first_token_s=first_s,
            prompt_s=first_s,
            decode_s=decode_s,
            prompt_tokens_per_s=float(self._speeds.get("prompt_per_second") or prompt_rate),
            decode_tokens_per_s=float(self._speeds.get("predicted_per_second") or decode_rate),
        )


def _whole(index: int, call: _Call) -> ToolCall | BrokenToolCall:
    text = "".join(call.arguments) or "{}"
    try:
        arguments = json.loads(text)
    except ValueError:
        return BrokenToolCall(text, f"the arguments of {call.name} are no JSON", index=index)
    return ToolCall(call.name, arguments, call.id, index)


def _logprobs(found: Any) -> tuple[TokenLogprobs, ...]:
    """Those of chats, or in the older form of plain text."""
    if isinstance(found, dict) and isinstance(found.get("tokens"), list):
        best = found.get("top_logprobs") or [None] * len(found["tokens"])
        rows = zip(found["tokens"], found["token_logprobs"], best, strict=True)
        return tuple(TokenLogprobs(*_of_text(text, number), best=_best_of_text(best)) for text, number, best in rows)
    if not isinstance(found, dict) or not isinstance(found.get("content"), list):
        return ()
    return tuple(
        TokenLogprobs(*_logprob(token), best=tuple(TokenLogprob(*_logprob(other)) for other in _best(token)))
        for token in found["content"]
    )


def _of_text(text: str, number: float | None) -> tuple[int, bytes, float]:
    return _UNKNOWN_ID, text.encode(), float(number or 0.0)


def _best_of_text(best: Mapping[str, float] | None) -> tuple[TokenLogprob, ...]:
    ranked = sorted((best or {}).items(), key=lambda pair: -pair[1])
    return tuple(TokenLogprob(*_of_text(text, number)) for text, number in ranked)


def _best(token: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return token.get("top_logprobs") or []


def _logprob(token: Mapping[str, Any]) -> tuple[int, bytes, float]:
    """A token's id (-1 where the server keeps it to itself), its bytes, and its logarithm."""
    numbers = token.get("bytes")
    text = bytes(numbers) if isinstance(numbers, list) else str(token.get("token", "")).encode()
    return int(token.get("id", _UNKNOWN_ID)), text, float(token["logprob"])


def _words(chunk: Any) -> str:
    error = chunk.get("error") if isinstance(chunk, dict) else chunk
    return str(error.get("message") or error if isinstance(error, dict) else error)[:400]
