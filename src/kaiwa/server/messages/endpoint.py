"""`POST /v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.connection import while_connected
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.event_stream import EventStream
from kaiwa.server.messages import answer, translation
from kaiwa.server.messages.objects import AnthropicMessage, TokenCount
from kaiwa.server.messages.request import CountRequest, MessagesRequest
from kaiwa.server.serving import Serving


async def create(serving: Serving, request: Request, body: MessagesRequest) -> Response:
    """Answer a conversation."""
    asked = translation.ask(body)
    events = serving.answer(asked, request.state.client)
    if body.stream:
        pieces = answer.written(events, model=asked.model)
        return EventStream(pieces, answer.tell, comment_every_s=serving.settings.comment_every_s)
    return json_response(await while_connected(request.receive, answer.whole(events, model=asked.model)))


async def count(serving: Serving, request: Request, body: CountRequest) -> Response:
    """How many tokens a conversation has as a prompt."""
    options = translation.prompt_options(body)
    async with serving.model(body.model) as model:
        # In a thread, as the model may live in another process.
        counted = partial(model.count_tokens, translation.messages(body), **options)
        num_tokens = await asyncio.to_thread(counted)
    return json_response({"input_tokens": num_tokens})


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/messages",
        create,
        "Answer a conversation (Anthropic's messages)",
        takes=MessagesRequest,
        gives=AnthropicMessage,
        streams=True,
        statuses=(404, 429, 503),
    ),
    Endpoint(
        "POST",
        "/v1/messages/count_tokens",
        count,
        "How many tokens a conversation has",
        takes=CountRequest,
        gives=TokenCount,
        statuses=(404, 429, 503),
    ),
)
