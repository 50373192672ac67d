"""Probabilities of tokens in OpenAI's two shapes: that of chat completions and the older one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kaiwa.events import TokenLogprob, TokenLogprobs

IMPOSSIBLE = -9999.0
"""What stands for minus infinity, which JSON does not have."""


def chat_objects(logprobs: Iterable[TokenLogprobs]) -> list[dict[str, Any]]:
    """One object for each token, with the most probable ones in its place."""
    return [{**_chat_object(one), "top_logprobs": [_chat_object(other) for other in one.best]} for one in logprobs]


def _chat_object(one: TokenLogprob) -> dict[str, Any]:
    return {"token": text_of(one), "logprob": max(one.logprob, IMPOSSIBLE), "bytes": list(one.token)}


def completion_object(logprobs: Sequence[TokenLogprobs], *, offset: int) -> dict[str, Any]:
    """Four lists with an entry for each token; `offset` is where in the whole text the first one begins."""
    texts = [text_of(one) for one in logprobs]
    offsets = [offset + sum(map(len, texts[:index])) for index in range(len(texts))]
    return {
        "tokens": texts,
        "token_logprobs": [max(one.logprob, IMPOSSIBLE) for one in logprobs],
        "top_logprobs": [{text_of(other): max(other.logprob, IMPOSSIBLE) for other in one.best} for one in logprobs],
        "text_offset": offsets,
    }


def text_of(one: TokenLogprob) -> str:
    """A token as text; bytes that are part of a character only come as the replacement character."""
    return one.token.decode("utf-8", "replace")
