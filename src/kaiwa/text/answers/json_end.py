"""Where a JSON value ends, in text that comes in pieces. It does not check what is inside."""

from __future__ import annotations

import re

_NOTABLE = re.compile(r'["\\{}\[\]]')
_SCALAR_ENDS = re.compile(r"[\s,\]}]")


class JsonEnd:
    """Follows one value: an object, a list, a text, or a word such as a number, which ends before `,`, `]` or `}`."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_begun = False
        self._is_word = False
        self._is_in_text = False
        self._is_escaped = False

    @property
    def may_end(self) -> bool:
        """Whether the value may end where the text does: a number says so only by what follows."""
        return self._is_word

    def find(self, text: str) -> int | None:
        """How many characters of the next piece belong to the value, if it ends in it. Not to be asked again then."""
        if not self._is_begun and text:
            self._is_begun = True
            self._is_word = text[0] not in '{["'
        if self._is_word:
            ends = _SCALAR_ENDS.search(text)
            return ends.start() if ends else None
        position = 0
        if self._is_escaped and text:
            self._is_escaped, position = False, 1
        while found := _NOTABLE.search(text, position):
            position = found.end()
            if self._is_in_text:
                if found.group() == "\\":
                    if position == len(text):
                        self._is_escaped = True
                    position += 1
                elif found.group() == '"':
                    self._is_in_text = False
            elif found.group() == '"':
                self._is_in_text = True
            elif found.group() in "{[":
                self._depth += 1
            elif found.group() in "}]":
                self._depth -= 1
            if not self._is_in_text and self._depth <= 0 and found.group() != "\\":
                return position
        return None
