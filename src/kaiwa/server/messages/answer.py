"""The answers of `/v1/messages`: events made into one object, or into Anthropic's events as they come."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from kaiwa.events import Finished, PromptProgress, Usage
from kaiwa.server.blocks import Block, Blocks, Change
from kaiwa.server.errors import ApiError, anthropic_object
from kaiwa.server.event_stream import named_event
from kaiwa.server.json_text import dumps, quoted
from kaiwa.server.merge import Numbered

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}
_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


async def whole(events: AsyncGenerator[Numbered], *, model: str) -> dict[str, Any]:
    """The object of an answer that is not streamed."""
    blocks = Blocks()
    finished: Finished | None = None
    async with aclosing(events):
        async for _, happened in events:
            for _change in blocks.push(happened):
                pass
            if isinstance(happened, Finished):
                finished = happened
    assert finished is not None
    content = [_block_object(block) for block in blocks.kept]
    return {**_message(model), "content": content, **_ending(finished), "usage": _usage_object(finished.usage)}


async def written(events: AsyncGenerator[Numbered], *, model: str) -> AsyncGenerator[bytes]:
    """The events of an answer that is streamed, in Anthropic's words."""
    blocks = Blocks()
    has_begun = False
    async with aclosing(events):
        async for _, happened in events:
            if not has_begun:
                has_begun = True
                yield _start(model, happened)
            for change in blocks.push(happened):
                yield _event_of(change)
            if isinstance(happened, Finished):
                for change in blocks.close():
                    yield _event_of(change)
                yield _event("message_delta", delta=_ending(happened), usage=_usage_object(happened.usage))
    yield _event("message_stop")


def tell(error: ApiError) -> bytes:
    """What goes wrong in the middle of a stream."""
    return _event("error", error=anthropic_object(error))


def _start(model: str, first: object) -> bytes:
    """The first event. How long the prompt is may be known already; the last event says it again."""
    usage = Usage(0, 0, 0)
    if isinstance(first, PromptProgress):
        usage = Usage(first.prompt_tokens, first.cached_tokens, 0)
    message = {**_message(model), "content": [], "stop_reason": None, "stop_sequence": None}
    return _event("message_start", message={**message, "usage": _usage_object(usage)})


def _event_of(change: Change) -> bytes:
    kind, block, piece = change
    if kind == "open":
        return _event("content_block_start", index=block.index, content_block=_opening(block))
    if kind == "close":
        return _event("content_block_stop", index=block.index)
    name, field = _DELTAS.get(block.kind, ("input_json_delta", "partial_json"))
    return named_event(
        "content_block_delta",
        f'{{"type":"content_block_delta","index":{block.index},"delta":{{"type":"{name}","{field}":{quoted(piece)}}}}}',
    )


def _opening(block: Block) -> dict[str, Any]:
    """A block that is still empty."""
    if block.kind == "tool_use":
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
    return _EMPTY[block.kind]


def _block_object(block: Block) -> dict[str, Any]:
    if block.kind == "tool_use":
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": json.loads(block.content or "{}")}
    return {**_EMPTY[block.kind], block.kind: block.content}


def _message(model: str) -> dict[str, Any]:
    return {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": model}


def _ending(finished: Finished) -> dict[str, Any]:
    if finished.stop_string:
        return {"stop_reason": "stop_sequence", "stop_sequence": finished.stop_string}
    return {"stop_reason": _STOP_REASONS[finished.finish_reason], "stop_sequence": None}


def _usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.generated_tokens,
    }


def _event(name: str, /, **fields: Any) -> bytes:
    return named_event(name, dumps({"type": name, **fields}))
