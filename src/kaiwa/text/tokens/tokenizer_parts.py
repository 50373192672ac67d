"""What a tokenizer is made of, whichever kind of file described it: the arguments of `Tokenizer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from kaiwa.text.tokens.special_tokens import SpecialTokens
from kaiwa.text.tokens.vocabulary import Vocabulary


class TokenizerParts(TypedDict):
    """The parts of one tokenizer, read and checked. `Tokenizer` says what they mean."""

    vocabulary: Vocabulary
    special_tokens: SpecialTokens
    bos_id: int | None
    eos_id: int | None
    end_ids: frozenset[int]
    adds_bos: bool
    drops_space: bool
    spaces: Mapping[str, int]
    closing_id: int | None
    chat_template: str | None
