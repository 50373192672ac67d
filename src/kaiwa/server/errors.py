"""What a client is told when it gets no answer: Kaiwa's errors in the words of OpenAI's and Anthropic's APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.errors import (
    Busy,
    Cancelled,
    ContextOverflow,
    DownloadFailed,
    EngineCrashed,
    InvalidMessages,
    InvalidOption,
    KaiwaError,
    ModelNotFound,
    OutOfMemory,
    RemoteFailed,
    TemplateError,
    UnsupportedModel,
)
from kaiwa.server.json_text import encoded

ANTHROPIC_PATHS = "/v1/messages"


class ApiError(Exception):
    """A request that is not answered.

    `status` is HTTP's; `code` is a word for programs ("context_length_exceeded"), `param` the field that is to blame.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})


class ClientGone(Exception):
    """The client closed its connection: nobody is left to be told anything."""


SHUTTING_DOWN = ApiError(503, "the server is shutting down, and the answer ends here", code="shutting_down")

EXPECTED = (ApiError, KaiwaError, ClientGone)
"""What may go wrong without a mistake in the server."""

_STATUSES: tuple[tuple[type[KaiwaError], int, str], ...] = (
    (ContextOverflow, 400, "context_length_exceeded"),
    (InvalidOption, 400, "invalid_value"),
    (InvalidMessages, 400, "invalid_value"),
    (TemplateError, 400, "invalid_value"),
    (UnsupportedModel, 400, "unsupported_model"),
    (ModelNotFound, 404, "model_not_found"),
    (RemoteFailed, 502, "model_server_failed"),
    (Cancelled, 503, "cancelled"),
    (OutOfMemory, 503, "out_of_memory"),
    (DownloadFailed, 503, "model_not_loaded"),
    (EngineCrashed, 503, "engine_crashed"),
)


def of(error: Exception) -> ApiError:
    """The error as a client shall see it.

    What Kaiwa did not raise on purpose is told without its words, which may be about this machine or other people.
    """
    if isinstance(error, ApiError):
        return error
    if not isinstance(error, KaiwaError):
        return ApiError(500, "the server failed; its log says where", code="internal_error")
    message = f"{error} ({error.hint})" if error.hint else str(error)
    if isinstance(error, Busy):
        headers = {"Retry-After": str(max(1, round(error.retry_after_s)))}
        return ApiError(429, f"{message}; yours would be number {error.place:,}", code="queue_full", headers=headers)
    for kind, status, code in _STATUSES:
        if isinstance(error, kind):
            return ApiError(status, message, code=code, param="messages" if kind is ContextOverflow else None)
    return ApiError(500, message, code="internal_error")


def incompatible(param: str, message: str) -> ApiError:
    """A field that is right by itself contradicts another."""
    return ApiError(400, message, code="incompatible_parameters", param=param)


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    **_OPENAI_TYPES,
    413: "request_too_large",
    503: "overloaded_error",
}


def body(error: ApiError, path: str) -> bytes:
    """The JSON object of an error, as the API behind that path writes it."""
    if path.startswith(ANTHROPIC_PATHS):
        return encoded({"type": "error", "error": anthropic_object(error)})
    return encoded({"error": openai_object(error)})


def openai_object(error: ApiError) -> dict[str, Any]:
    """OpenAI's error object."""
    kind = _OPENAI_TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    return {"message": error.message, "type": kind, "param": error.param, "code": error.code}


def anthropic_object(error: ApiError) -> dict[str, Any]:
    """Anthropic's error object."""
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {"type": kind, "message": error.message}
