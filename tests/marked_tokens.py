"""A tokenizer whose tokens are bytes, and whose markers are tokens of their own or not."""

from __future__ import annotations

from collections.abc import Iterable

from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens
from kaiwa.text.tokens.tokenizer import Tokenizer

END = 256


class Bytes:
    """A vocabulary of 256 tokens."""

    size = 256

    def segment(self, text: str, place: object) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else b""


def tokenizer(markers: Iterable[str] = ()) -> Tokenizer:
    """Bytes, an end, and the markers as control tokens."""
    texts = ["<|end_of_turn|>", *markers]
    special = SpecialTokens(SpecialToken(END + place, text, is_control=True) for place, text in enumerate(texts))
    return Tokenizer(Bytes(), special, bos_id=None, eos_id=END, end_ids=frozenset([END]), adds_bos=False)


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of what a model writes: markers are tokens where there are such."""
    return tokenizer.encode_prompt(RenderedPrompt(text))
