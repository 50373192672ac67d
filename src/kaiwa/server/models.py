"""`/v1/models`: which models there are, and which are in memory."""

from __future__ import annotations

from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.runtime.pool.room import ModelStatus
from kaiwa.server.connection import while_connected
from kaiwa.server.described import Described
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.serving import Serving


class ModelObject(Described):
    """A model, as OpenAI's API says it, and what is known here besides. Memory in bytes."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    state: str
    context_length: int | None
    memory_bytes: int | None
    family: str | None
    number_format: str | None


class ModelList(Described):
    """All models."""

    object: Literal["list"]
    data: list[ModelObject]


async def list_all(serving: Serving, request: Request) -> Response:
    """All models that may be asked for."""
    objects = [_object(status, serving.started_s) for status in serving.pool.models()]
    return json_response({"object": "list", "data": objects})


async def one(serving: Serving, request: Request) -> Response:
    """One of them."""
    return json_response(_object(serving.pool.status(request.path_params["model"]), serving.started_s))


async def load(serving: Serving, request: Request) -> Response:
    """Load a model, and answer when it is in memory."""
    name = request.path_params["model"]
    await while_connected(request.receive, serving.pool.load(name))
    return json_response(_object(serving.pool.status(name), serving.started_s))


async def unload(serving: Serving, request: Request) -> Response:
    """Unload a model as soon as nobody uses it."""
    name = request.path_params["model"]
    serving.pool.unload(name)
    return json_response(_object(serving.pool.status(name), serving.started_s))


def _object(status: ModelStatus, created_s: int) -> dict[str, Any]:
    card = status.card
    return {
        "id": status.name,
        "object": "model",
        "created": created_s,
        "owned_by": "kaiwa",
        "state": status.state.value,
        "context_length": card.context_length if card else None,
        "memory_bytes": status.num_bytes,
        "family": card.family if card else None,
        "number_format": card.number_format if card else None,
    }


ENDPOINTS = (
    Endpoint("GET", "/v1/models", list_all, "All models that may be asked for", gives=ModelList),
    # Names may have slashes, so what is longer comes first.
    Endpoint("POST", "/v1/models/{model:path}/load", load, "Load a model", gives=ModelObject, statuses=(404, 503)),
    Endpoint("POST", "/v1/models/{model:path}/unload", unload, "Unload a model", gives=ModelObject, statuses=(404,)),
    Endpoint("GET", "/v1/models/{model:path}", one, "One model", gives=ModelObject, statuses=(404,)),
)
