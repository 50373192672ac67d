"""The tokenizer: text to token ids and back. It knows no messages; special tokens come from templates only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kaiwa.errors import InvalidMessages
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens import folder_tokenizer, gguf_tokenizer
from kaiwa.text.tokens.special_tokens import SpecialTokens
from kaiwa.text.tokens.vocabulary import Place, Vocabulary


class Tokenizer:
    """Token ids of text, and text of token ids.

    `end_ids` are those after which a turn is over. `spaces` are white-space runs with a token of their own, which are
    matched before anything else. `closing_id` ends a text that is read as a whole, to make a vector of it.
    `drops_space` says that a space which encoding put before a text is taken off again when decoding.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        special_tokens: SpecialTokens,
        *,
        bos_id: int | None,
        eos_id: int | None,
        end_ids: frozenset[int],
        adds_bos: bool,
        drops_space: bool = False,
        spaces: Mapping[str, int] | None = None,
        closing_id: int | None = None,
        chat_template: str | None = None,
    ) -> None:
        self.special_tokens = special_tokens
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.end_ids = end_ids
        self.adds_bos = adds_bos and bos_id is not None
        self.chat_template = chat_template
        self.closing_id = closing_id
        self.drops_space = drops_space
        self._vocabulary = vocabulary
        self._spaces = spaces or {}
        self._space_texts = {token_id: text for text, token_id in self._spaces.items()}
        longest_first = sorted(self._spaces, key=len, reverse=True)
        self._space_pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any], *, path: object = "the file") -> Tokenizer:
        """The tokenizer that a GGUF file's metadata describes (`tokenizer.ggml.*`, `tokenizer.chat_template`).

        Raises `UnusableFile` (which names `path`) if it is broken, `UnsupportedFormat` for a kind unknown here.
        """
        return cls(**gguf_tokenizer.rebuild(metadata, path))

    @classmethod
    def from_folder(cls, path: Path, *, end_ids: Iterable[int] = ()) -> Tokenizer:
        """The tokenizer of a Hugging Face checkpoint: its folder has a `tokenizer.json`.

        `end_ids` are the ids that its generation config names as ends. What `tokenizer.json` itself makes alike
        (composed and decomposed letters, `▁` and a space) is alike here too.

        Raises `UnusableFile` or `UnsupportedFormat`.
        """
        return cls(**folder_tokenizer.load(path, end_ids))

    @property
    def vocab_size(self) -> int:
        """One more than the highest token id."""
        return max(self._vocabulary.size, *(token_id + 1 for token_id in self.special_tokens.values()), 0)

    @property
    def bos_token(self) -> str:
        """The text of the token that begins a sequence, as templates print it; empty where there is none."""
        return self._text_of(self.bos_id)

    @property
    def eos_token(self) -> str:
        """The text of the token that ends a sequence, as templates print it; empty where there is none."""
        return self._text_of(self.eos_id)

    def encode(self, text: str) -> list[int]:
        """The ids of ordinary text: whatever it says, none of them is a special token.

        Raises `InvalidMessages` for a lone surrogate, which is no character.
        """
        _check_characters(text)
        return self._encode_run(text, "first")

    def encode_rest(self, text: str) -> list[int]:
        """The ids of ordinary text that goes on from other text, so that no space is put before it."""
        _check_characters(text)
        return self._encode_run(text, "after text")

    def encode_prompt(self, prompt: RenderedPrompt) -> list[int]:
        """The ids of a rendered prompt: special tokens where the template wrote them.

        The token that begins a sequence is added if the tokenizer adds one and the template did not print it.
        """
        _check_characters(prompt.text)
        ids: list[int] = []
        place: Place = "first"
        for part in self.special_tokens.split(prompt):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids.extend(self._encode_run(part, place))
            place = "after special"
        if self.adds_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)
        return ids

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = False) -> str:
        """The text of `token_ids`; bytes that are no UTF-8 become U+FFFD. `skip_special` leaves control tokens out."""
        pieces = b"".join(
            self.token_bytes(token_id) for token_id in token_ids if not (skip_special and self.is_control(token_id))
        )
        text = pieces.decode("utf-8", "replace")
        return text[1:] if self.drops_space and text.startswith(" ") else text

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one token stands for. Empty for an id that the vocabulary does not have."""
        token = self.special_tokens.find(token_id)
        text = token.text if token else self._space_texts.get(token_id)
        return self._vocabulary.token_bytes(token_id) if text is None else text.encode()

    def all_token_bytes(self, num_tokens: int) -> list[bytes]:
        """What each of the first `num_tokens` ids stands for."""
        table = [self._vocabulary.token_bytes(token_id) for token_id in range(num_tokens)]
        for text, token_id in (*self._spaces.items(), *self.special_tokens.items()):
            if token_id < num_tokens:
                table[token_id] = text.encode()
        return table

    def is_control(self, token_id: int) -> bool:
        """Whether the token is never shown: turn markers, beginnings, ends."""
        token = self.special_tokens.find(token_id)
        return token is not None and token.is_control

    def _encode_run(self, text: str, place: Place) -> list[int]:
        if self._space_pattern is None:
            return self._vocabulary.segment(text, place) if text else []
        ids: list[int] = []
        for part in filter(None, self._space_pattern.split(text)):
            if part in self._spaces:
                ids.append(self._spaces[part])
            else:
                ids.extend(self._vocabulary.segment(part, place))
            place = "after text"
        return ids

    def _text_of(self, token_id: int | None) -> str:
        return "" if token_id is None else self.token_bytes(token_id).decode("utf-8", "replace")


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X}"
        raise InvalidMessages(
            f"the text has a lone surrogate, {found}, at position {error.start:,}: half of a character",
            hint="decode the text as UTF-8, or pass text.encode('utf-8', 'replace').decode()",
        ) from None
