"""Reading a request's body: JSON by its own word, not too large, not too slow, and not too deep."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from kaiwa.server.errors import ApiError, ClientGone
from kaiwa.server.settings import ServerSettings
from kaiwa.server.strict import Strict, parse

READ_S = 60.0
HEARD_OUT = 16
"""How many times too large a body is before the connection breaks: who still talks would never hear what is wrong."""

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
    is_too_large = announced.isdecimal() and int(announced) > max_bytes
    if is_too_large and "expect" in request.headers:  # it waits for our word before it sends
        raise too_large
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        is_too_large = is_too_large or size > max_bytes
        if size > HEARD_OUT * max_bytes:
            break
        if not is_too_large:
            pieces.append(piece)
    if is_too_large:
        raise too_large
    return b"".join(pieces)
