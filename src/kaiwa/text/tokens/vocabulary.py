"""Vocabularies: runs of ordinary text to ids, and ids to the bytes they stand for. They know no special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import tokenizers

SPACE_MARK = "▁"
"""SentencePiece writes a space as this character, U+2581."""


Place = Literal["first", "after special", "after text"]
"""Where a run stands: it opens the whole text, follows a special token, or continues text."""


class Vocabulary(Protocol):
    """What a tokenizer needs of a vocabulary."""

    @property
    def size(self) -> int:
        """One more than the highest id."""
        ...

    def segment(self, text: str, place: Place) -> list[int]:
        """The ids of a run of text between special tokens."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What an id stands for; empty where the vocabulary does not have it."""
        ...


class LibraryVocabulary:
    """A vocabulary in the `tokenizers` library.

    `is_byte_level` says how its pieces are written: one character for each byte (GPT-2's alphabet), or as
    SentencePiece does, with `▁` for a space and `<0x0A>` for a byte. `extra_pieces` are ids the library leaves out.
    `continuing` encodes runs that do not open the text, where that differs.
    """

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        *,
        size: int,
        is_byte_level: bool,
        extra_pieces: Mapping[int, str] | None = None,
        continuing: tokenizers.Tokenizer | None = None,
    ) -> None:
        self.size = size
        self._tokenizer = tokenizer
        self._continuing = continuing or tokenizer
        self._extra_pieces = extra_pieces or {}
        self._bytes_of = byte_level_bytes if is_byte_level else sentencepiece_bytes

    def segment(self, text: str, place: Place) -> list[int]:
        tokenizer = self._tokenizer if place == "first" else self._continuing
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    def token_bytes(self, token_id: int) -> bytes:
        piece = self._tokenizer.id_to_token(token_id) or self._extra_pieces.get(token_id, "")
        return self._bytes_of(piece)


def byte_level_bytes(piece: str) -> bytes:
    """The bytes of a piece in GPT-2's alphabet; characters outside of it stand for themselves."""
    return b"".join(_BYTES.get(character) or character.encode() for character in piece)


def sentencepiece_bytes(piece: str) -> bytes:
    """The bytes of a SentencePiece piece: `▁the` is ` the`, `<0xE3>` is one byte."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes.fromhex(piece[3:5])
    return piece.replace(SPACE_MARK, " ").encode()


def _byte_alphabet() -> dict[str, bytes]:
    """GPT-2's alphabet: printable Latin-1 bytes are themselves, the other 68 follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    alphabet = {chr(byte): bytes([byte]) for byte in printable}
    alphabet.update((chr(0x100 + index), bytes([byte])) for index, byte in enumerate(others))
    return alphabet


_BYTES = _byte_alphabet()
