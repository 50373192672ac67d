"""SentencePiece vocabularies with scores: neighbours are merged, best score first, and what is left falls to bytes.

Written here and not rebuilt as a merge list for the `tokenizers` library: 256,000 Gemma pieces would become 600,000
merges (over a second at every start, and 100 MB), and equal scores would be broken by rank and not by position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from kaiwa.text.tokens.vocabulary import SPACE_MARK, Place, sentencepiece_bytes

CACHED_WORDS = 10_000
CACHED_WORD_LENGTH = 32


class ScoredPieces:
    """A vocabulary that merges by score, as SentencePiece's BPE and llama.cpp do.

    `pieces` and `scores` are by id. `mergeable` maps the text of those ids that ordinary text may become to the id;
    `byte_ids` has the id of each byte where the vocabulary has such tokens. A space is put before a run that opens
    the text or follows a special token if `adds_space`.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        scores: Sequence[float],
        *,
        mergeable: Mapping[str, int],
        byte_ids: Mapping[int, int],
        unknown_id: int | None,
        adds_space: bool,
    ) -> None:
        self.size = len(pieces)
        self._pieces = pieces
        self._scores = scores
        self._mergeable = mergeable
        self._byte_ids = byte_ids
        self._unknown_ids = [] if unknown_id is None else [unknown_id]
        self._adds_space = adds_space
        self._words = _word_pattern(mergeable)
        self._cache: dict[str, list[int]] = {}

    def segment(self, text: str, place: Place) -> list[int]:
        ids: list[int] = []
        if self._adds_space and place != "after text":
            text = " " + text
        for index, part in enumerate(text.split(SPACE_MARK)):
            if index:
                # A typed ▁ is not a space: its bytes keep it apart, where the pieces could not.
                ids.extend(self._fall_back(SPACE_MARK))
            for word in self._words.findall(part.replace(" ", SPACE_MARK)):
                ids.extend(self._segment_word(word))
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        return sentencepiece_bytes(self._pieces[token_id]) if 0 <= token_id < self.size else b""

    def _segment_word(self, word: str) -> list[int]:
        ids = self._cache.get(word)
        if ids is None:
            ids = [token_id for symbol in self._merge(word) for token_id in self._ids_of(symbol)]
            if len(word) <= CACHED_WORD_LENGTH:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = ids
        return ids

    def _ids_of(self, symbol: str) -> Sequence[int]:
        token_id = self._mergeable.get(symbol)
        return self._fall_back(symbol) if token_id is None else (token_id,)

    def _fall_back(self, symbol: str) -> list[int]:
        try:
            return [self._byte_ids[byte] for byte in symbol.encode()]
        except KeyError:
            return self._unknown_ids

    def _merge(self, word: str) -> list[str]:
        """The symbols of a word after every merge: the best score goes first, among equals the leftmost."""
        symbols = list(word)
        following = list(range(1, len(symbols) + 1))
        preceding = list(range(-1, len(symbols) - 1))
        queue: list[tuple[float, int, int, str]] = []

        def candidate(left: int, right: int) -> tuple[float, int, int, str] | None:
            merged = symbols[left] + symbols[right]
            token_id = self._mergeable.get(merged)
            return None if token_id is None else (-self._scores[token_id], left, right, merged)

        queue.extend(filter(None, (candidate(left, left + 1) for left in range(len(symbols) - 1))))
        heapify(queue)
        while queue:
            _, left, right, merged = heappop(queue)
            if not symbols[left] or not symbols[right] or symbols[left] + symbols[right] != merged:
                continue
            symbols[left], symbols[right] = merged, ""
            after = following[left] = following[right]
            if after < len(symbols):
                preceding[after] = left
                if pair := candidate(left, after):
                    heappush(queue, pair)
            if preceding[left] >= 0 and (pair := candidate(preceding[left], left)):
                heappush(queue, pair)
        return [symbol for symbol in symbols if symbol]


def _word_pattern(mergeable: Mapping[str, int]) -> re.Pattern[str]:
    """How a run may be cut before merging without changing the result: before a space, if no piece reaches over one."""
    reaches_over = any(SPACE_MARK in piece.lstrip(SPACE_MARK) for piece in mergeable)
    return re.compile(".+" if reaches_over else f"{SPACE_MARK}*[^{SPACE_MARK}]+|{SPACE_MARK}+", re.DOTALL)
