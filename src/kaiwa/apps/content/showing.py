"""Showing a model's answer: every event of it becomes what a page shows of a message."""

from __future__ import annotations

import time

from kaiwa.apps.content.message import Message
from kaiwa.apps.content.step import as_json
from kaiwa.apps.context import current
from kaiwa.apps.protocol.frames import PromptProgress, QueuePlace
from kaiwa.apps.protocol.records import Timings, ToolCallPart, Usage
from kaiwa.events import (
    BrokenToolCall,
    Event,
    Finished,
    Queued,
    ReasoningDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
)
from kaiwa.events import PromptProgress as PromptRead

_PROGRESS_EVERY_S = 0.1


class Showing:
    """Shows the events of one answer in `message`. `context_length` is the model's, in tokens."""

    def __init__(self, message: Message, *, context_length: int = 0) -> None:
        self._message = message
        self._context_length = context_length
        self._calls: dict[int, ToolCallPart] = {}
        self._is_queued = False
        self._next_progress_at = 0.0

    async def show(self, event: Event) -> None:
        """Show one event."""
        if self._is_queued and not isinstance(event, Queued):
            self._tell_place(0)
        match event:
            case Queued(place=place):
                self._tell_place(place)
            case PromptRead():
                self._tell_progress(event)
            case ReasoningDelta(reasoning=reasoning):
                await self._message.stream_reasoning(reasoning)
            case ToolCallStarted(index=index, id=call_id, name=name):
                await self._call(index, ToolCallPart(id=call_id, name=name))
            case ToolCallDelta(index=index, arguments=arguments):
                begun = self._calls[index]
                await self._call(index, begun.model_copy(update={"arguments": begun.arguments + arguments}))
            case ToolCall(index=index, id=call_id, name=name):
                await self._call(index, ToolCallPart(id=call_id or name, name=name, arguments=as_json(event.arguments)))
            case BrokenToolCall(index=index, text=text, reason=reason):
                if index is not None:
                    broken = self._calls[index].model_copy(update={"result": reason, "is_error": True})
                    await self._call(index, broken)
                await self._message.stream_token(text)
            case Finished():
                self._finish(event)
            case _ if event.text:
                await self._message.stream_token(event.text)

    async def _call(self, index: int, call: ToolCallPart) -> None:
        self._calls[index] = call
        await self._message.show_tool_call(call)

    def _finish(self, event: Finished) -> None:
        self._message.finish_reason = event.finish_reason
        usage, timings = event.usage, event.timings
        self._message.usage = Usage(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            generated_tokens=usage.generated_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            context_length=self._context_length,
        )
        self._message.timings = Timings(
            first_token_s=timings.first_token_s,
            prompt_s=timings.prompt_s,
            decode_s=timings.decode_s,
            prompt_tokens_per_s=timings.prompt_tokens_per_s,
            decode_tokens_per_s=timings.decode_tokens_per_s,
        )

    def _tell_place(self, place: int) -> None:
        session = current().session
        self._is_queued = place > 0
        session.post(QueuePlace(chat_id=session.chat_id, place=place))

    def _tell_progress(self, event: PromptRead) -> None:
        now, session = time.monotonic(), current().session
        if now < self._next_progress_at and event.read_tokens < event.prompt_tokens:
            return
        self._next_progress_at = now + _PROGRESS_EVERY_S
        told = PromptProgress(
            chat_id=session.chat_id,
            read_tokens=event.read_tokens,
            prompt_tokens=event.prompt_tokens,
            cached_tokens=event.cached_tokens,
        )
        session.post(told)
