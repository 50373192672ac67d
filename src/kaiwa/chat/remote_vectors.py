"""What a server is asked for besides answers: vectors of texts, and the tokens of llama.cpp's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kaiwa.chat.embedding import Embedding, of_length_1
from kaiwa.errors import InvalidMessages, InvalidOption, RemoteFailed, UnsupportedModel

Texts = Sequence[str | Sequence[int]]


def embedding_body(model: str, texts: Texts, pooling: str | None) -> dict[str, Any]:
    """The JSON object for `/embeddings`. Raises `InvalidMessages` or `InvalidOption`."""
    if isinstance(texts, str):
        raise InvalidMessages("one text was given where a list of texts is expected", hint=f"write [{texts[:20]!r}]")
    if pooling is not None:
        raise InvalidOption(f"pooling={pooling!r} is the server's to decide", hint="leave it out")
    read = [text if isinstance(text, str) else list(text) for text in texts]
    if not all(read):
        raise InvalidMessages("a text is empty, and has no embedding", hint="leave it out")
    return {"model": model, "input": read, "encoding_format": "float"}


def embeddings(answer: Any, num_texts: int) -> list[Embedding]:
    """The vectors in the order of the texts. Raises `RemoteFailed` for an answer that has others."""
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [of_length_1([float(number) for number in row["embedding"]]) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise RemoteFailed(f"the server's answer has no vectors: {str(answer)[:200]}") from error
    if len(vectors) != num_texts:
        raise RemoteFailed(f"the server gave {len(vectors)} vectors for {num_texts} texts")
    usage = answer.get("usage")
    total = int(usage.get("prompt_tokens") or 0) if isinstance(usage, Mapping) else 0
    return [Embedding(vector, 0 if place else total) for place, vector in enumerate(vectors)]


def no_tokenizer(url: str) -> UnsupportedModel:
    """The error for what OpenAI's API has no words for."""
    return UnsupportedModel(
        f"{url} tells nobody its tokens: OpenAI's API has no tokenizer",
        hint="count_tokens(messages) asks it for a count; llama.cpp's server, and a model on this machine, have one",
    )
