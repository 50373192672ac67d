"""The decoder: token ids as they come to text that may be shown. It never splits a character."""

from __future__ import annotations

import codecs
from collections.abc import Collection

from kaiwa.text.tokens.tokenizer import Tokenizer


class Decoder:
    """Text of one stream of token ids.

    All that `push` and then `flush` return, joined, is `tokenizer.decode(ids, skip_special=True)`. Control tokens that
    are `shown` are for a parser, which needs to see them.
    """

    def __init__(self, tokenizer: Tokenizer, *, shown: Collection[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._drops_space = tokenizer.drops_space
        self._shown_ids = frozenset(tokenizer.special_tokens[text] for text in shown)

    def push(self, token_id: int) -> str:
        """The characters that this token completes; what it only begins is held back."""
        if self._tokenizer.is_control(token_id) and token_id not in self._shown_ids:
            return ""
        return self._trim(self._bytes.decode(self._tokenizer.token_bytes(token_id)))

    def flush(self) -> str:
        """What is held back when no more tokens come: U+FFFD for a character cut short, or nothing."""
        return self._trim(self._bytes.decode(b"", final=True))

    def _trim(self, text: str) -> str:
        if self._drops_space and text:
            self._drops_space = False
            return text.removeprefix(" ")
        return text
