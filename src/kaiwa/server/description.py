"""`/openapi.json` and `/docs`: what the server says of itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.endpoint import JSON, Endpoint
from kaiwa.server.json_text import encoded
from kaiwa.server.serving import Serving

HTML = "text/html"


def endpoints(described: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints that describe others. The description is made when somebody first asks for it."""

    @functools.cache
    def written(media_type: str) -> bytes:
        from kaiwa.server import openapi  # a server that nobody asks starts faster without it

        return openapi.page(described).encode() if media_type == HTML else encoded(openapi.document(described))

    async def document(serving: Serving, request: Request) -> Response:
        return Response(written(JSON), media_type=JSON)

    async def page(serving: Serving, request: Request) -> Response:
        return Response(written(HTML), media_type=HTML)

    return (
        Endpoint("GET", "/openapi.json", document, "This description, for programs", gives=JSON),
        Endpoint("GET", "/docs", page, "This description, for people", gives=HTML),
    )
