"""What `/v1/responses` gives, for the documentation: the answers themselves are written by `answer`."""

from __future__ import annotations

from typing import Any, Literal

from kaiwa.server.described import Described


class ResponseUsage(Described):
    """Token counts."""

    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


class ResponseObject(Described):
    """A whole response. What is not named here repeats the request."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "incomplete"]
    error: None
    incomplete_details: dict[str, str] | None
    model: str
    output: list[dict[str, Any]]
    usage: ResponseUsage
    previous_response_id: str | None


class DeletedResponse(Described):
    """It is kept no longer."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]
