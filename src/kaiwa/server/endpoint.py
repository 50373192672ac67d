"""One row of the table that makes both the routes of the server and their documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from starlette.responses import Response

from kaiwa.server.json_text import encoded
from kaiwa.server.strict import Strict

JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path, what it takes and gives, and the function that answers.

    `handle` is called with the server's state, the request, and the checked body where it `takes` one.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    handle: Callable[..., Awaitable[Response]]
    summary: str
    takes: type[Strict] | None = None
    gives: type[BaseModel] | str = "text/plain"
    """A JSON object of that model, or another media type."""
    streams: bool = False
    """Whether it may also give a stream of events."""
    statuses: tuple[int, ...] = ()
    """What may go wrong, beside what may go wrong everywhere."""


def json_response(value: Any) -> Response:
    """A JSON object, as the body of a response."""
    return Response(encoded(value), media_type=JSON)
