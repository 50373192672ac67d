"""`POST /v1/completions`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.ask import TextAsk
from kaiwa.server.completions import answer
from kaiwa.server.completions.objects import Completion
from kaiwa.server.completions.request import CompletionRequest, ask
from kaiwa.server.connection import while_connected
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.event_stream import EventStream, openai_event
from kaiwa.server.head import Head
from kaiwa.server.serving import Serving
from kaiwa.server.tokens import detokenized


async def create(serving: Serving, request: Request, body: CompletionRequest) -> Response:
    """Go on with a text."""
    asked = ask(body)
    head = Head(asked.model, "cmpl")
    begins = await _prompts(serving, asked) if body.echo else [""] * asked.num_choices
    events = serving.answer(asked, request.state.client)
    if body.stream:
        include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        pieces = answer.chunks(events, head=head, begins=begins, num_each=asked.num_each, include_usage=include_usage)
        return EventStream(pieces, openai_event, comment_every_s=serving.settings.comment_every_s)
    has_logprobs = body.logprobs is not None
    work = answer.whole(events, head=head, begins=begins, num_each=asked.num_each, has_logprobs=has_logprobs)
    return json_response(await while_connected(request.receive, work))


async def _prompts(serving: Serving, asked: TextAsk) -> list[str]:
    """The text that each choice goes on with."""
    texts = [
        prompt if isinstance(prompt, str) else await detokenized(serving, asked.model, prompt)
        for prompt in asked.prompts
    ]
    return [text for text in texts for _ in range(asked.num_each)]


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/completions",
        create,
        "Go on with a text, without a chat template (OpenAI's completions)",
        takes=CompletionRequest,
        gives=Completion,
        streams=True,
        statuses=(404, 429, 503),
    ),
)
