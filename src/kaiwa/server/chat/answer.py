"""The answers of `/v1/chat/completions`: events made into one object, or into chunks as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from kaiwa.events import (
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
    TokenLogprobs,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)
from kaiwa.server.event_stream import DONE, event
from kaiwa.server.head import Head, usage_object
from kaiwa.server.json_text import dumps, quoted
from kaiwa.server.logprobs import chat_objects
from kaiwa.server.merge import Numbered

_NOTHING = Usage(0, 0, 0)


@dataclass(slots=True)
class _Choice:
    """What has come of one choice."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    finished: Finished | None = None

    def add(self, event: Event) -> None:
        self.text.append(event.text)
        if isinstance(event, TextDelta):
            self.logprobs.extend(event.logprobs)
        elif isinstance(event, ReasoningDelta):
            self.reasoning.append(event.reasoning)
        elif isinstance(event, ToolCall):
            self.calls.append(event)
        elif isinstance(event, Finished):
            self.finished = event

    def to_dict(self, index: int, *, has_logprobs: bool) -> dict[str, Any]:
        assert self.finished is not None
        text: str | None = "".join(self.text)
        if self.calls:
            text = text or None
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self.reasoning:
            message["reasoning_content"] = message["reasoning"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = [_call_object(call) for call in self.calls]
        return {
            "index": index,
            "message": message,
            "logprobs": {"content": chat_objects(self.logprobs), "refusal": None} if has_logprobs else None,
            "finish_reason": self.finished.finish_reason,
        }


async def whole(
    events: AsyncGenerator[Numbered], *, head: Head, num_choices: int, has_logprobs: bool
) -> dict[str, Any]:
    """The object of an answer that is not streamed."""
    choices = [_Choice() for _ in range(num_choices)]
    async with aclosing(events):
        async for index, happened in events:
            choices[index].add(happened)
    usages = [choice.finished.usage for choice in choices if choice.finished]
    return {
        **head.to_dict("chat.completion"),
        "choices": [choice.to_dict(index, has_logprobs=has_logprobs) for index, choice in enumerate(choices)],
        "usage": usage_object(usages, num_each=num_choices),
        "service_tier": "default",
        "system_fingerprint": None,
    }


async def chunks(events: AsyncGenerator[Numbered], *, head: Head, include_usage: bool) -> AsyncGenerator[bytes]:
    """The chunks of an answer that is streamed, as events of the connection."""
    writer = _Writer(head, include_usage=include_usage)
    choices: dict[int, _StreamedChoice] = {}
    async with aclosing(events):
        async for index, happened in events:
            choice = choices.get(index)
            if choice is None:
                choice = choices[index] = _StreamedChoice()
                yield writer.delta(index, '"role":"assistant","content":""')
            if isinstance(happened, Finished):
                choice.usage = happened.usage
                yield writer.delta(index, "", finish_reason=quoted(happened.finish_reason))
            elif fields := choice.fields(happened):
                yield writer.delta(index, fields, logprobs=_logprobs(happened))
    if include_usage:
        usages = [choices[index].usage for index in sorted(choices)]
        yield writer.usage(usage_object(usages, num_each=len(usages)))
    yield DONE


@dataclass(slots=True)
class _StreamedChoice:
    """What must be known of one choice while it is written."""

    usage: Usage = _NOTHING
    started_calls: set[int] = field(default_factory=set)

    def fields(self, happened: Event) -> str:
        """The fields of a delta, as JSON without its braces; empty where there is nothing to tell."""
        if isinstance(happened, TextDelta):
            return '"content":' + quoted(happened.text)
        if isinstance(happened, ReasoningDelta):
            thought = quoted(happened.reasoning)
            return f'"reasoning_content":{thought},"reasoning":{thought}'
        if isinstance(happened, ToolCallDelta):
            arguments = quoted(happened.arguments)
            return f'"tool_calls":[{{"index":{happened.index},"function":{{"arguments":{arguments}}}}}]'
        if isinstance(happened, ToolCallStarted):
            self.started_calls.add(happened.index)
            return _beginning_of(happened.index, happened.id, happened.name, "")
        if isinstance(happened, ToolCall) and happened.index not in self.started_calls:
            return _beginning_of(happened.index, happened.id, happened.name, dumps(happened.arguments))
        return '"content":' + quoted(happened.text) if happened.text else ""


def _beginning_of(index: int, id_: str, name: str, arguments: str) -> str:
    call = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
    return f'"tool_calls":[{dumps(call)}]'


def _logprobs(delta: Event) -> str:
    if not isinstance(delta, TextDelta) or not delta.logprobs:
        return "null"
    return dumps({"content": chat_objects(delta.logprobs), "refusal": None})


class _Writer:
    """Writes chunks of a fixed shape: only what differs from token to token is made into JSON for it."""

    def __init__(self, head: Head, *, include_usage: bool) -> None:
        self._head = dumps({**head.to_dict("chat.completion.chunk"), "system_fingerprint": None})[:-1]
        self._usage = ',"usage":null' if include_usage else ""

    def delta(self, index: int, fields: str, *, logprobs: str = "null", finish_reason: str = "null") -> bytes:
        return event(
            f'{self._head},"choices":[{{"index":{index},"delta":{{{fields}}},"logprobs":{logprobs},'
            f'"finish_reason":{finish_reason}}}]{self._usage}}}'
        )

    def usage(self, usage: dict[str, Any]) -> bytes:
        return event(f'{self._head},"choices":[],"usage":{dumps(usage)}}}')


def _call_object(call: ToolCall) -> dict[str, Any]:
    arguments = dumps(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
