"""reply: a model's answer to what was said so far, streamed into the chat."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from kaiwa.apps.chat_context import chat_context
from kaiwa.apps.content.message import Message
from kaiwa.apps.content.showing import Showing
from kaiwa.apps.context import current
from kaiwa.apps.model import Model
from kaiwa.chat.model import ChatModel
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
    showing = Showing(answer, context_length=await _context_length(model))
    options.setdefault("client", current().session.chat_id)  # people who share a model have their turns, and no secrets
    async with aclosing(model.astream(turns, **options)) as events:
        async for event in events:
            await showing.show(event)
    await answer.send()
    return answer


async def _context_length(model: Model | ChatModel) -> int:
    if not isinstance(model, Model):
        return model.card.context_length
    async with model.use() as loaded:
        return loaded.card.context_length
