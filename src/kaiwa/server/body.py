"""Reading a request's body: JSON by its own word, not too large, not too slow, and not too deep."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from kaiwa.server.errors import ApiError, ClientGone
from kaiwa.server.settings import ServerSettings
from kaiwa.server.strict import Strict, parse

READ_S = 60.0

S = TypeVar("S", bound=Strict)


async def read(request: Request, kind: type[S], settings: ServerSettings) -> S:
    """The checked body. Raises `ApiError` with what is wrong with it."""
    # A page of another origin can send forms and plain text without asking, but not this type.
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError(
            415, f"the body is of type {media_type or 'nothing'!r}, not application/json", code="unsupported_media_type"
        )
    try:
        async with asyncio.timeout(READ_S):
            raw = await _read(request, settings.max_body_bytes)
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {READ_S:.0f} s", code="request_timeout") from None
    except ClientDisconnect:
        raise ClientGone from None
    return parse(kind, raw, max_depth=settings.max_json_depth)


async def _read(request: Request, max_bytes: int) -> bytes:
    too_large = ApiError(413, f"the body is larger than {max_bytes:,} bytes", code="request_too_large")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise too_large
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > max_bytes:
            raise too_large
        pieces.append(piece)
    return b"".join(pieces)
