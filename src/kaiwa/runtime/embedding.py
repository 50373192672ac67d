"""Texts as vectors on an engine: what may be asked, and how the model makes one."""

from __future__ import annotations

from collections.abc import Sequence

from kaiwa.chat.embedding import Embedding, of_length_1
from kaiwa.engines.engine import Engine, EngineInfo, Pooling
from kaiwa.errors import ContextOverflow, InvalidMessages, UnsupportedModel


def check(token_ids: Sequence[int], info: EngineInfo) -> None:
    """Raises `InvalidMessages` for no or unknown tokens, `ContextOverflow` for more than the context holds."""
    if not token_ids:
        raise InvalidMessages("a text is empty, and has no embedding", hint="leave it out")
    if wrong := [token_id for token_id in token_ids if not 0 <= token_id < info.vocab_size]:
        raise InvalidMessages(f"a text has the token {wrong[0]}, and the model knows 0 to {info.vocab_size - 1:,}")
    if len(token_ids) > info.context_length:
        raise ContextOverflow(len(token_ids), info.context_length)


def check_pooling(declared: str | None, name: str) -> Pooling:
    """How a model makes one vector of a text, "mean" where its files say nothing. Raises `UnsupportedModel`."""
    if declared is None or declared == "mean":
        return "mean"
    if declared == "last":
        return "last"
    raise UnsupportedModel(
        f"{name} makes its vectors by {declared!r}, and this engine knows 'mean' and 'last'",
        hint="choose another model, or say pooling='mean' if that is what you want",
    )


def embed(engine: Engine, *, token_ids: Sequence[int], pooling: Pooling) -> Embedding:
    """The embedding of one text."""
    return Embedding(of_length_1(engine.embed(token_ids, pooling=pooling)), len(token_ids))
