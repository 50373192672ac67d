"""`POST /v1/chat/completions`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.chat import answer
from kaiwa.server.chat.objects import ChatCompletion
from kaiwa.server.chat.request import ChatRequest, ask
from kaiwa.server.connection import while_connected
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.errors import incompatible
from kaiwa.server.event_stream import EventStream, openai_event
from kaiwa.server.head import Head
from kaiwa.server.serving import Serving


async def create(serving: Serving, request: Request, body: ChatRequest) -> Response:
    """Answer a conversation."""
    asked = ask(body)
    events = serving.answer(asked, request.state.client)
    head = Head(asked.model, "chatcmpl")
    if body.stream:
        include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        pieces = answer.chunks(events, head=head, include_usage=include_usage)
        return EventStream(pieces, openai_event, comment_every_s=serving.settings.comment_every_s)
    if body.stream_options is not None:
        raise incompatible("stream_options", "stream_options is given without stream")
    work = answer.whole(events, head=head, num_choices=asked.num_choices, has_logprobs=bool(body.logprobs))
    return json_response(await while_connected(request.receive, work))


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/chat/completions",
        create,
        "Answer a conversation (OpenAI's chat completions)",
        takes=ChatRequest,
        gives=ChatCompletion,
        streams=True,
        statuses=(404, 429, 503),
    ),
)
