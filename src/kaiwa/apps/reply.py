"""reply: a model's answer to what was said so far, streamed into the chat."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from kaiwa.apps.chat_context import chat_context
from kaiwa.apps.message import Message
from kaiwa.apps.model import Model
from kaiwa.apps.protocol import records
from kaiwa.apps.step import as_json
from kaiwa.chat.model import ChatModel
from kaiwa.events import Event, Finished, ReasoningDelta, ToolCall
from kaiwa.messages import Conversation


async def reply(
    model: Model | ChatModel,
    *,
    messages: Conversation | None = None,
    system: str = "",
    author: str | None = None,
    **options: Any,
) -> Message:
    """Answer the chat's own history, or `messages`; what the model says is shown as it comes, and returned.

    `system` goes before the history. `options` are those of sampling, and `tools`. What the model thinks and which
    tools it calls is shown too; the tools are not called. When the run is stopped, so is the model.

    Raises what the model's `stream` raises: `ContextOverflow` where the history does not fit.
    """
    turns: Conversation = chat_context.to_openai() if messages is None else messages
    if system and not isinstance(turns, str):
        turns = [{"role": "system", "content": system}, *turns]
    answer = Message(author=author)
    async with aclosing(model.astream(turns, **options)) as events:
        async for event in events:
            await show(event, answer)
    await answer.send()
    return answer


async def show(event: Event, answer: Message) -> None:
    """Show one event of a model's answer in a message."""
    match event:
        case ReasoningDelta(reasoning=reasoning):
            await answer.stream_reasoning(reasoning)
        case ToolCall(name=name, arguments=arguments, id=call_id):
            call = records.ToolCallPart(id=call_id or name, name=name, arguments=as_json(arguments))
            await answer.show_tool_call(call)
        case Finished():
            answer.finish_reason = event.finish_reason
            usage, timings = event.usage, event.timings
            answer.usage = records.Usage(
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                generated_tokens=usage.generated_tokens,
            )
            answer.timings = records.Timings(
                first_token_s=timings.first_token_s,
                prompt_s=timings.prompt_s,
                decode_s=timings.decode_s,
                prompt_tokens_per_s=timings.prompt_tokens_per_s,
                decode_tokens_per_s=timings.decode_tokens_per_s,
            )
        case _ if event.text:
            await answer.stream_token(event.text)
