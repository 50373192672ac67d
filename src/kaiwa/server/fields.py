"""Fields that several APIs have in common, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from kaiwa.sampling import MAX_STOP_STRINGS
from kaiwa.server.strict import WHOLE, Strict, option

MAX_CHOICES = 16

ModelName = Annotated[str, Field(min_length=1, max_length=512)]
StopString = Annotated[str, Field(min_length=1)]
Stop = StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS)]
TokenId = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})$")]
TokenIds = Annotated[list[Annotated[int, Field(ge=0), WHOLE]], Field(min_length=1)]
Biases = Annotated[
    dict[TokenId, Annotated[float, Field(ge=-100, le=100)]], Field(json_schema_extra={"additionalProperties": False})
]
Choices = Annotated[int, Field(ge=1, le=MAX_CHOICES), WHOLE]


class StreamOptions(Strict):
    """What a stream tells beside the answer."""

    include_usage: bool | None = None
    """End with a chunk that has the usage."""
    include_obfuscation: Literal[False] | None = None


class SamplingFields(Strict):
    """How tokens are drawn, in the words of OpenAI's API and those that other servers have added to it."""

    temperature: Annotated[float, option("temperature")] | None = None
    top_p: Annotated[float, option("top_p")] | None = None
    top_k: Annotated[int, option("top_k"), WHOLE] | None = None
    min_p: Annotated[float, option("min_p")] | None = None
    repetition_penalty: Annotated[float, option("repetition_penalty")] | None = None
    presence_penalty: Annotated[float, option("presence_penalty")] | None = None
    frequency_penalty: Annotated[float, option("frequency_penalty")] | None = None
    seed: Annotated[int, option("seed"), WHOLE] | None = None
    stop: Stop | None = Field(default=None, description="end the answer before any of these texts")
    logit_bias: Biases | None = Field(default=None, description="what is added to the score of a token, by its id")

    def sampling_options(self) -> dict[str, Any]:
        """The options of `Sampling` that are given.

        A temperature means that tokens are drawn, whatever the model's own defaults say.
        """
        options = {name: getattr(self, name) for name in SamplingFields.model_fields}
        given = {name: value for name, value in options.items() if value is not None}
        if given.get("temperature"):
            given["do_sample"] = True
        if self.logit_bias is not None:
            given["logit_bias"] = {int(token_id): bias for token_id, bias in self.logit_bias.items()}
        return given


def in_rows(texts: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]) -> list[str | Sequence[int]]:
    """One text or several, each as text or as its token ids, as a list of them."""
    if isinstance(texts, str):
        return [texts]
    rows = [text for text in texts if not isinstance(text, int)]
    return rows or [[token_id for token_id in texts if isinstance(token_id, int)]]
