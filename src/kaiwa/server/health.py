"""`/health`: whether the server answers. It needs no key and says nothing else."""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.described import Described
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.serving import Serving


class Health(Described):
    """The server is up."""

    status: Literal["ok"]


async def health(serving: Serving, request: Request) -> Response:
    """Whether the server answers."""
    return json_response({"status": "ok"})


ENDPOINTS = (Endpoint("GET", "/health", health, "Whether the server answers", gives=Health),)
