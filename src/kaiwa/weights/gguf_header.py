"""The numbers, texts and arrays of a GGUF header, read one after the other, each checked before it is used.

Knows the types of the format, and nothing of what the keys mean.
"""

from __future__ import annotations

import array
import struct
from typing import Any

from kaiwa.errors import UnusableFile
from kaiwa.weights.mapped_file import MappedFile

KIND = "GGUF"
MAX_HEADER_BYTES = 1 << 27
"""No header may be longer; the longest that real models have, with 260,000 tokens, are under 2**24."""
MAX_ARRAY_DEPTH = 4
MAX_ARRAY_ITEMS = 1 << 22
"""No array may be longer; the longest that real models have (merges of a tokenizer) are under 2**20."""

_BOOL, _TEXT, _ARRAY = 7, 8, 9
# The number types, by what a file calls them, as codes of `struct` and `array`.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_LAYOUTS = {type: struct.Struct(f"<{code}") for type, code in _NUMBERS.items()}
_MIN_ITEM_BYTES = {_BOOL: 1, _TEXT: 8, _ARRAY: 12} | {type: layout.size for type, layout in _LAYOUTS.items()}
U32, U64 = _LAYOUTS[4], _LAYOUTS[10]
TOO_SHORT = "the file was cut short: download or copy it again"


class HeaderReader:
    """A position in a file's header. Every method checks that what it reads is there, and moves on past it."""

    def __init__(self, file: MappedFile) -> None:
        self.file = file
        self.at = 0
        self._data = file.data
        self._end = min(file.num_bytes, MAX_HEADER_BYTES)

    def failure(self, reason: str, *, hint: str = "") -> UnusableFile:
        """The error to raise."""
        return UnusableFile(self.file.path, KIND, reason, hint=hint)

    def number(self, layout: struct.Struct, what: str) -> Any:
        """One number of this layout."""
        return layout.unpack(self._take(layout.size, what))[0]

    def count(self, what: str, min_bytes: int) -> int:
        """How many things follow, each of which takes at least `min_bytes`."""
        count: int = self.number(U64, f"the number of {what}")
        if count * min_bytes > self._end - self.at:
            raise self.failure(
                f"it promises {count:,} {what}, and has only {self._end - self.at:,} bytes left for them",
                hint=TOO_SHORT,
            )
        return count

    def text(self, what: str) -> str:
        """One text, in UTF-8."""
        length = self.number(U64, what)
        return _decode(self._take(length, what), what, self)

    def value(self, type: int, what: str, depth: int = 0) -> Any:
        """One value of a key, of this type of the format."""
        if type in _LAYOUTS:
            return self.number(_LAYOUTS[type], what)
        if type == _TEXT:
            return self.text(what)
        if type == _BOOL:
            return _truth(self._take(1, what)[0], what, self)
        if type == _ARRAY:
            return self._array(what, depth + 1)
        raise self._unknown(type, what)

    def _array(self, what: str, depth: int) -> Any:
        if depth > MAX_ARRAY_DEPTH:
            raise self.failure(f"{what} nests arrays more than {MAX_ARRAY_DEPTH} deep")
        type = self.number(U32, what)
        if type not in _MIN_ITEM_BYTES:
            raise self._unknown(type, what)
        count = self.count(f"items of {what}", _MIN_ITEM_BYTES[type])
        if count > MAX_ARRAY_ITEMS:
            raise self.failure(f"{what} has {count:,} items; at most {MAX_ARRAY_ITEMS:,} make sense")
        if type in _NUMBERS:
            numbers = array.array(_NUMBERS[type])
            numbers.frombytes(self._take(count * numbers.itemsize, what))
            return numbers
        if type == _TEXT:
            return self._texts(count, what)
        if type == _BOOL:
            return [_truth(byte, what, self) for byte in self._take(count, what)]
        return [self.value(type, what, depth) for _ in range(count)]

    def _texts(self, count: int, what: str) -> list[str]:
        # A vocabulary has 100,000 of them: the one place where reading must be quick.
        data, end, at = self._data, self._end, self.at
        length_of = int.from_bytes
        texts: list[str] = []
        for _ in range(count):
            begin = at + 8
            at = begin + length_of(data[at:begin], "little")
            if at > end:
                raise self._cut_short(what)
            try:
                texts.append(data[begin:at].decode())
            except UnicodeDecodeError:
                _decode(data[begin:at], f"item {len(texts)} of {what}", self)
        self.at = at
        return texts

    def _take(self, num_bytes: int, what: str) -> bytes:
        begin, self.at = self.at, self.at + num_bytes
        if self.at > self._end:
            raise self._cut_short(what)
        return self._data[begin : self.at]

    def _unknown(self, type: int, what: str) -> UnusableFile:
        return self.failure(f"{what} has type {type}; the types of the format are 0 to 12")

    def _cut_short(self, what: str) -> UnusableFile:
        if self._end < self.file.num_bytes:
            return self.failure(f"its header is longer than {MAX_HEADER_BYTES:,} bytes")
        return self.failure(f"the file ends in the middle of {what}", hint=TOO_SHORT)


def _decode(text: bytes, what: str, reader: HeaderReader) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise reader.failure(f"{what} holds text that is not UTF-8: {text[error.start : error.start + 4]!r}") from error


def _truth(byte: int, what: str, reader: HeaderReader) -> bool:
    if byte > 1:
        raise reader.failure(f"{what} should be true or false (1 or 0), and is {byte}")
    return byte == 1
