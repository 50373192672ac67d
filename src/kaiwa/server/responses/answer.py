"""The answers of `/v1/responses`: blocks made into items, whole or as events that tell how they come about."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from kaiwa.events import Finished, TextDelta, TokenLogprobs
from kaiwa.server.blocks import Block, Blocks, Change
from kaiwa.server.errors import ApiError
from kaiwa.server.event_stream import named_event
from kaiwa.server.json_text import dumps, quoted
from kaiwa.server.logprobs import chat_objects
from kaiwa.server.merge import Numbered
from kaiwa.server.responses.request import ResponseRequest

_PREFIXES = {"text": "msg", "thinking": "rs", "tool_use": "fc"}


class Draft:
    """A response while it is written."""

    def __init__(self, request: ResponseRequest) -> None:
        self.id = f"resp_{secrets.token_hex(16)}"
        self._request = request
        self._created_s = int(time.time())
        self._blocks = Blocks()
        self._item_ids: dict[int, str] = {}
        self.logprobs: dict[int, list[TokenLogprobs]] = {}
        """Those of each block of text."""
        self.finished: Finished | None = None

    def push(self, happened: Any) -> Iterator[Change]:
        """Take an event; how it changes the blocks."""
        for change in self._blocks.push(happened):
            if isinstance(happened, TextDelta) and happened.logprobs and change[0] == "add":
                self.logprobs.setdefault(change[1].index, []).extend(happened.logprobs)
            yield change
        if isinstance(happened, Finished):
            self.finished = happened
            yield from self._blocks.close()

    def item_id(self, block: Block) -> str:
        """The id of the item that a block becomes."""
        if block.index not in self._item_ids:
            self._item_ids[block.index] = f"{_PREFIXES[block.kind]}_{secrets.token_hex(12)}"
        return self._item_ids[block.index]

    def item(self, block: Block, status: str) -> dict[str, Any]:
        """The item that a block becomes, as far as it is written."""
        item_id, is_new = self.item_id(block), not block.pieces
        if block.kind == "tool_use":
            call = {"call_id": block.id, "name": block.name, "arguments": block.content}
            return {"id": item_id, "type": "function_call", "status": status, **call}
        content = [] if is_new else [self.part(block)]
        if block.kind == "thinking":
            return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}
        return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}

    def part(self, block: Block) -> dict[str, Any]:
        """The one part that a block of text or thoughts has."""
        if block.kind == "thinking":
            return {"type": "reasoning_text", "text": block.content}
        logprobs = chat_objects(self.logprobs.get(block.index, ()))
        return {"type": "output_text", "text": block.content, "annotations": [], "logprobs": logprobs}

    def turn(self) -> dict[str, Any]:
        """What the model said, as a turn of the conversation."""
        texts = {kind: "".join(b.content for b in self._blocks.kept if b.kind == kind) for kind in ("text", "thinking")}
        turn: dict[str, Any] = {"role": "assistant", "content": texts["text"]}
        if texts["thinking"]:
            turn["reasoning_content"] = texts["thinking"]
        calls = [
            {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.content}}
            for block in self._blocks.kept
            if block.kind == "tool_use"
        ]
        return {**turn, "tool_calls": calls} if calls else turn

    def to_dict(self, *, error: ApiError | None = None) -> dict[str, Any]:
        """The response object, as far as it is written."""
        request, finished = self._request, self.finished
        is_cut = finished is not None and finished.finish_reason == "length"
        status = "failed" if error else "in_progress" if not finished else "incomplete" if is_cut else "completed"
        blocks = self._blocks.kept
        item_statuses = ["completed"] * (len(blocks) - 1) + [status]
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created_s,
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "error": {"code": "server_error", "message": error.message} if error else None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "model": request.model,
            "output": [self.item(block, word) for block, word in zip(blocks, item_statuses, strict=False)]
            if finished
            else [],
            "usage": _usage_object(finished) if finished else None,
            **_echoed(request),
        }


async def whole(events: AsyncGenerator[Numbered], draft: Draft) -> dict[str, Any]:
    """The object of a response that is not streamed."""
    async with aclosing(events):
        async for _, happened in events:
            for _change in draft.push(happened):
                pass
    return draft.to_dict()


async def written(
    events: AsyncGenerator[Numbered], draft: Draft, *, on_end: Callable[[dict[str, Any]], None]
) -> AsyncGenerator[bytes]:
    """The events of a response that is streamed; `on_end` gets the whole of it."""
    teller = Teller(draft)
    has_begun = False
    async with aclosing(events):
        async for _, happened in events:
            if not has_begun:
                has_begun = True
                yield teller.event("response.created", response=draft.to_dict())
                yield teller.event("response.in_progress", response=draft.to_dict())
            logprobs = happened.logprobs if isinstance(happened, TextDelta) else ()
            for change in draft.push(happened):
                for piece in teller.told(change, logprobs):
                    yield piece
    response = draft.to_dict()
    on_end(response)
    yield teller.event(f"response.{response['status']}", response=response)


class Teller:
    """Writes numbered events."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._number = 0

    def event(self, name: str, /, **fields: Any) -> bytes:
        """One event."""
        self._number += 1
        return named_event(name, dumps({"type": name, "sequence_number": self._number - 1, **fields}))

    def fail(self, error: ApiError) -> bytes:
        """What goes wrong in the middle."""
        return self.event("error", code=error.code, message=error.message, param=error.param)

    def told(self, change: Change, logprobs: tuple[TokenLogprobs, ...]) -> Iterator[bytes]:
        """How a block changed."""
        kind, block, piece = change
        if kind == "add":
            yield self._delta(block, piece, logprobs)
        elif kind == "open":
            item = self._draft.item(block, "in_progress")
            yield self.event("response.output_item.added", output_index=block.index, item=item)
            if block.kind != "tool_use":
                yield self.event("response.content_part.added", **self._place(block), part=self._draft.part(block))
        else:
            yield from self._done(block)

    def _delta(self, block: Block, piece: str, logprobs: tuple[TokenLogprobs, ...]) -> bytes:
        item_id = self._draft.item_id(block)
        if block.kind == "tool_use":
            name, more = "response.function_call_arguments.delta", ""
        elif block.kind == "thinking":
            name, more = "response.reasoning_text.delta", ',"content_index":0'
        else:
            name = "response.output_text.delta"
            more = f',"content_index":0,"logprobs":{dumps(chat_objects(logprobs)) if logprobs else "[]"}'
        self._number += 1
        return named_event(
            name,
            f'{{"type":"{name}","sequence_number":{self._number - 1},"item_id":"{item_id}",'
            f'"output_index":{block.index}{more},"delta":{quoted(piece)}}}',
        )

    def _done(self, block: Block) -> Iterator[bytes]:
        place = self._place(block)
        if block.kind == "tool_use":
            del place["content_index"]
            yield self.event("response.function_call_arguments.done", **place, name=block.name, arguments=block.content)
        else:
            part = self._draft.part(block)
            if block.kind == "thinking":
                yield self.event("response.reasoning_text.done", **place, text=block.content)
            else:
                yield self.event("response.output_text.done", **place, text=block.content, logprobs=part["logprobs"])
            yield self.event("response.content_part.done", **place, part=part)
        is_cut = self._draft.finished is not None and self._draft.finished.finish_reason == "length"
        item = self._draft.item(block, "incomplete" if is_cut else "completed")
        yield self.event("response.output_item.done", output_index=block.index, item=item)

    def _place(self, block: Block) -> dict[str, Any]:
        return {"item_id": self._draft.item_id(block), "output_index": block.index, "content_index": 0}


def _usage_object(finished: Finished) -> dict[str, Any]:
    usage = finished.usage
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.prompt_tokens - usage.cached_tokens,
        },
        "output_tokens": usage.generated_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def _echoed(request: ResponseRequest) -> dict[str, Any]:
    """What the response repeats of its request."""
    fields = request.model_dump(by_alias=True)
    effort = request.reasoning.effort if request.reasoning else None
    return {
        "instructions": request.instructions,
        "previous_response_id": request.previous_response_id,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "tools": fields["tools"] or [],
        "tool_choice": fields["tool_choice"] or "auto",
        "text": {"format": (fields["text"] or {}).get("format") or {"type": "text"}},
        "reasoning": {"effort": effort, "summary": None},
        "truncation": "disabled",
        "store": request.store is not False,
        "service_tier": "default",
        "background": False,
    }
