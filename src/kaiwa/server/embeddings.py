"""`POST /v1/embeddings`: texts as vectors."""

from __future__ import annotations

import array
import base64
import sys
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kaiwa.chat.embedding import Embedding as Embedded
from kaiwa.server.connection import while_connected
from kaiwa.server.described import Described
from kaiwa.server.endpoint import Endpoint, json_response
from kaiwa.server.fields import ModelName, TokenIds, in_rows
from kaiwa.server.serving import Serving
from kaiwa.server.strict import Strict

MAX_TEXTS = 2048

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]


class EmbeddingRequest(Strict):
    """Texts to make vectors of."""

    model: ModelName
    input: Text | Texts | TokenIds | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_TEXTS)] = Field(
        description="text, token ids, or several of either"
    )
    encoding_format: Literal["float", "base64"] | None = Field(
        default=None, description="numbers, or the bytes of 32-bit floats, the lowest first"
    )

    unsupported: ClassVar = {
        "dimensions": "vectors are as long as the model makes them",
        "user": "texts share nothing of what is computed",
    }


class Embedding(Described):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(Described):
    """Token counts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Described):
    """The vectors of all texts, in their order."""

    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: EmbeddingUsage


async def create(serving: Serving, request: Request, body: EmbeddingRequest) -> Response:
    """Make vectors of texts."""
    texts = in_rows(body.input)
    pairs = await while_connected(request.receive, _embed(serving, body.model, texts))
    written = _in_base64 if body.encoding_format == "base64" else list
    num_tokens = sum(count for _, count in pairs)
    return json_response(
        {
            "object": "list",
            "model": body.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": written(vector)}
                for index, (vector, _) in enumerate(pairs)
            ],
            "usage": {"prompt_tokens": num_tokens, "total_tokens": num_tokens},
        }
    )


async def _embed(serving: Serving, model_name: str, texts: Sequence[Text | Sequence[int]]) -> list[Embedded]:
    async with serving.model(model_name) as model:
        return await model.aembed(texts)


def _in_base64(vector: Sequence[float]) -> Any:
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers).decode()


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/embeddings",
        create,
        "Texts as vectors (OpenAI's embeddings)",
        takes=EmbeddingRequest,
        gives=EmbeddingList,
        statuses=(404, 429, 503),
    ),
)
