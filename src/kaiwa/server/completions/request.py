"""The request of `/v1/completions`, and what it asks of a model."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kaiwa.server.ask import TextAsk
from kaiwa.server.errors import incompatible
from kaiwa.server.fields import Choices, ModelName, SamplingFields, StreamOptions, TokenIds, in_rows
from kaiwa.server.strict import WHOLE, option

MAX_PROMPTS = 16
MAX_LOGPROBS = 5

Texts = Annotated[list[str], Field(min_length=1, max_length=MAX_PROMPTS)]


class CompletionRequest(SamplingFields):
    """Text to go on with."""

    model: ModelName
    prompt: str | Texts | TokenIds | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS)] = Field(
        description="text, token ids, or several of either"
    )
    max_tokens: Annotated[int, option("max_new_tokens"), WHOLE] | None = Field(
        default=16, description="16 is what OpenAI's API takes where nothing is said; null is up to the end"
    )
    n: Choices | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS), WHOLE] | None = None
    echo: bool | None = Field(default=None, description="begin with the prompt")
    user: str | None = Field(default=None, description="whose texts share what is computed of them")

    unsupported: ClassVar = {
        "best_of": "choices are not ranked",
        "suffix": "models here write forwards only",
    }


def ask(request: CompletionRequest) -> TextAsk:
    """What the request asks of a model. Raises `ApiError` for fields that contradict each other."""
    if request.stream_options is not None and not request.stream:
        raise incompatible("stream_options", "stream_options is given without stream")
    if request.echo and request.logprobs is not None:
        raise incompatible("echo", "echo is given with logprobs, and those of a prompt are not computed")
    options = {
        **request.sampling_options(),
        "max_new_tokens": request.max_tokens,
        "num_logprobs": request.logprobs,
    }
    return TextAsk(
        request.model,
        in_rows(request.prompt),
        {name: value for name, value in options.items() if value is not None},
        request.n or 1,
        request.user or "",
    )
