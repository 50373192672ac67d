"""Reading what a request carries, up to a bound."""

from __future__ import annotations

from starlette.requests import Request

from kaiwa.errors import Refused


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """The body, which must be JSON by its type. Raises `Refused` where it is not, or larger than `max_bytes`."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused("invalid", "the body is not JSON by its Content-Type", hint="send it as application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise Refused("too_large", f"the body is larger than {max_bytes:,} bytes")
    return bytes(body)
