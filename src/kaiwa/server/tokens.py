"""`/tokenize` and `/detokenize`: a model's tokens of a text, and the text of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kaiwa.server.described import Described
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.fields import ModelName
from kaiwa.server.serving import Serving
from kaiwa.server.strict import WHOLE, Strict


class TokenizeRequest(Strict):
    """A text to take apart. Nothing in it is read as a special token."""

    model: ModelName
    text: str


class Tokens(Described):
    """The tokens of a text."""

    tokens: list[int]
    count: int


class DetokenizeRequest(Strict):
    """Tokens to put together."""

    model: ModelName
    tokens: list[Annotated[int, Field(ge=0), WHOLE]]


class Text(Described):
    """The text of tokens, special ones included."""

    text: str


async def tokenize(serving: Serving, request: Request, body: TokenizeRequest) -> Response:
    """The tokens of a text."""
    async with serving.model(body.model) as model:
        # In a thread, as the model may live in another process.
        token_ids = await asyncio.to_thread(model.tokenize, body.text)
    return json_response({"tokens": token_ids, "count": len(token_ids)})


async def detokenize(serving: Serving, request: Request, body: DetokenizeRequest) -> Response:
    """The text of tokens."""
    return json_response({"text": await detokenized(serving, body.model, body.tokens)})


async def detokenized(serving: Serving, model_name: str, token_ids: Sequence[int]) -> str:
    """The text of tokens."""
    async with serving.model(model_name) as model:
        return await asyncio.to_thread(model.detokenize, token_ids)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/tokenize",
        tokenize,
        "The tokens of a text",
        takes=TokenizeRequest,
        gives=Tokens,
        statuses=(404, 429, 503),
    ),
    Endpoint(
        "POST",
        "/detokenize",
        detokenize,
        "The text of tokens",
        takes=DetokenizeRequest,
        gives=Text,
        statuses=(404, 429, 503),
    ),
)
