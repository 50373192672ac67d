"""Errors as HTTP answers: a `Problem` as JSON."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kaiwa.apps.protocol.records import Problem
from kaiwa.errors import KaiwaError, Refused

_STATUSES = {"not_found": 404, "too_large": 413, "conflict": 409, "login": 401, "foreign_origin": 403, "busy": 503}


def problem_of(error: KaiwaError) -> Problem:
    """What a page is told of an error."""
    code = error.code if isinstance(error, Refused) else "failed"
    return Problem(code=code, message=str(error), hint=error.hint)


def problem_response(error: KaiwaError, status: int | None = None) -> Response:
    """The error as an answer."""
    problem = problem_of(error)
    chosen = status or (_STATUSES.get(problem.code, 400) if isinstance(error, Refused) else 500)
    return Response(problem.model_dump_json(), status_code=chosen, media_type="application/json")


async def on_error(request: Request, error: Exception) -> Response:
    """Starlette's handler of our errors."""
    assert isinstance(error, KaiwaError)
    return problem_response(error)
