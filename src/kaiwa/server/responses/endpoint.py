"""`/v1/responses`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.connection import while_connected
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.errors import ApiError
from kaiwa.server.event_stream import EventStream, openai_event
from kaiwa.server.responses import answer
from kaiwa.server.responses.objects import DeletedResponse, ResponseObject
from kaiwa.server.responses.request import ResponseRequest, ask, new_turns
from kaiwa.server.responses.store import Kept
from kaiwa.server.serving import Serving


async def create(serving: Serving, request: Request, body: ResponseRequest) -> Response:
    """Answer items."""
    client: str = request.state.client
    earlier: Sequence[dict[str, Any]] = ()
    if body.previous_response_id is not None:
        earlier = _find(serving, client, body.previous_response_id, param="previous_response_id").turns
    events = serving.answer(ask(body, earlier), client)
    draft = answer.Draft(body)

    def keep(response: dict[str, Any]) -> None:
        if body.store is not False:
            serving.responses.put(client, response, [*earlier, *new_turns(body), draft.turn()])

    if body.stream:
        pieces = answer.written(events, draft, on_end=keep)
        return EventStream(pieces, openai_event, comment_every_s=serving.settings.comment_every_s)
    response = await while_connected(request.receive, answer.whole(events, draft))
    keep(response)
    return json_response(response)


async def retrieve(serving: Serving, request: Request) -> Response:
    """A response that is kept."""
    return json_response(_find(serving, request.state.client, request.path_params["response"]).response)


async def delete(serving: Serving, request: Request) -> Response:
    """Keep a response no longer."""
    response_id = request.path_params["response"]
    _find(serving, request.state.client, response_id)
    serving.responses.remove(request.state.client, response_id)
    return json_response({"id": response_id, "object": "response", "deleted": True})


def _find(serving: Serving, client: str, response_id: str, *, param: str | None = None) -> Kept:
    kept = serving.responses.find(client, response_id)
    if kept is None:
        message = f"there is no response {response_id[:80]!r} here, or not any longer"
        if param is not None:
            raise ApiError(400, message, code="previous_response_not_found", param=param)
        raise ApiError(404, message, code="response_not_found")
    return kept


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/responses",
        create,
        "Answer items (OpenAI's responses)",
        takes=ResponseRequest,
        gives=ResponseObject,
        streams=True,
        statuses=(404, 429, 503),
    ),
    Endpoint(
        "GET", "/v1/responses/{response}", retrieve, "A response that is kept", gives=ResponseObject, statuses=(404,)
    ),
    Endpoint("DELETE", "/v1/responses/{response}", delete, "Forget a response", gives=DeletedResponse, statuses=(404,)),
)
