"""Tools at work: a model calls functions, their results go back to it, and so on until it answers.

def get_weather(city: str) -> str:
'''The weather in a city.'''
return "sunny"

for event in run_tools(llm, "Is it warm in Ulm?", [get_weather]):
print(event.text, end="")
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Any

from kaiwa.chat.model import ChatModel
from kaiwa.chat.tool_schema import ToolLike, schemas
from kaiwa.errors import InvalidOption
from kaiwa.events import Event, Finished, ReasoningDelta, ToolCall, ToolResult
from kaiwa.messages import Conversation, Message, normalize

MAX_ROUNDS = 8


def run_tools(
    model: ChatModel,
    messages: Conversation,
    tools: Sequence[ToolLike],
    *,
    max_rounds: int = MAX_ROUNDS,
    **options: Any,
) -> Iterator[Event]:
    """The events of all rounds. Each round is an answer, which ends with `Finished`; a `ToolResult` follows each call.

    What a tool returns goes to the model as text, JSON where it is no text; what it raises, too. A call of a tool that
    is a schema only ends the rounds, for whoever reads the events to call it. In the last of `max_rounds` the model may
    call nothing more. `options` are those of `model.stream`.
    """
    rounds = _Rounds(messages, tools, max_rounds)
    while not rounds.is_over:
        for event in model.stream(rounds.messages, **rounds.options(options)):
            rounds.add(event)
            yield event
        for call in rounds.to_run():
            yield rounds.answer(call, *_called(rounds.function(call), call.arguments))


async def arun_tools(
    model: ChatModel,
    messages: Conversation,
    tools: Sequence[ToolLike],
    *,
    max_rounds: int = MAX_ROUNDS,
    **options: Any,
) -> AsyncGenerator[Event]:
    """As `run_tools`, without blocking the event loop: functions run in a thread, coroutine functions are awaited."""
    rounds = _Rounds(messages, tools, max_rounds)
    while not rounds.is_over:
        async for event in model.astream(rounds.messages, **rounds.options(options)):
            rounds.add(event)
            yield event
        for call in rounds.to_run():
            function = rounds.function(call)
            if inspect.iscoroutinefunction(function):
                result = await _awaited(function, call.arguments)
            else:
                result = await asyncio.to_thread(_called, function, call.arguments)
            yield rounds.answer(call, *result)


class _Rounds:
    """The conversation as it grows, and what of the current round is to be done. It calls nothing itself."""

    def __init__(self, messages: Conversation, tools: Sequence[ToolLike], max_rounds: int) -> None:
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
            raise InvalidOption(f"max_rounds={max_rounds!r} is impossible", hint="it must be at least 1")
        self.messages: list[Message] = normalize(messages)
        self.is_over = False
        self._schemas = schemas(tools)
        self._functions = {
            schema["function"]["name"]: tool
            for schema, tool in zip(self._schemas, tools, strict=True)
            if callable(tool)
        }
        self._left = max_rounds
        self._begin()

    def _begin(self) -> None:
        self._text, self._thoughts = "", ""
        self._calls: list[ToolCall] = []

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What this round's answer is asked with."""
        self._left -= 1
        last = {"tool_choice": "none"} if self._left == 0 else {}
        return {**given, "tools": self._schemas, **last}

    def add(self, event: Event) -> None:
        """Something of the model's answer."""
        self._text += event.text
        if isinstance(event, ReasoningDelta):
            self._thoughts += event.reasoning
        elif isinstance(event, ToolCall):
            self._calls.append(event)
        elif isinstance(event, Finished):
            self.is_over = not self._calls or event.finish_reason in ("cancelled", "length")

    def to_run(self) -> list[ToolCall]:
        """The calls of the answer that has ended, whose results the next one waits for; the answer joins the turns."""
        calls, text, thoughts = self._calls, self._text, self._thoughts
        self._begin()
        known = {schema.get("function", schema).get("name") for schema in self._schemas}
        if any(call.name in known and call.name not in self._functions for call in calls):
            self.is_over = True  # somebody else's tools: they will know what to do with the calls
        if self.is_over:
            return []
        extra: dict[str, Any] = {"tool_calls": [_as_asked(call) for call in calls]}
        if thoughts:
            extra["reasoning_content"] = thoughts
        self.messages.append(Message("assistant", text, extra))
        return calls

    def function(self, call: ToolCall) -> Callable[..., Any]:
        """What is to be called."""
        if call.name in self._functions:
            return self._functions[call.name]

        def unknown(**arguments: Any) -> None:
            raise LookupError(f"there is no tool {call.name!r}; there are {', '.join(sorted(self._functions))}")

        return unknown

    def answer(self, call: ToolCall, content: str, is_error: bool) -> ToolResult:
        """The result of a call, which joins the turns."""
        self.messages.append(Message("tool", content, {"tool_call_id": call.id, "name": call.name}))
        return ToolResult(call.name, content, call.id, is_error=is_error)


def _as_asked(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _called(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """What a function returns as text, and False; or what it raises, and True."""
    try:
        result = function(**arguments)
        return _text_of(asyncio.run(result) if inspect.iscoroutine(result) else result), False
    except Exception as error:  # noqa: BLE001  (the model reads it, and may call again)
        return _text_of_error(error), True


async def _awaited(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[str, bool]:
    try:
        return _text_of(await function(**arguments)), False
    except Exception as error:  # noqa: BLE001  (the model reads it, and may call again)
        return _text_of_error(error), True


def _text_of(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _text_of_error(error: Exception) -> str:
    return f"error: {type(error).__name__}: {error}"
