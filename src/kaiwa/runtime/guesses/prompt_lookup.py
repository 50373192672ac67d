"""Prompt lookup: what follows now may be what followed the last time that the context had these tokens."""

from __future__ import annotations

NUM_TOKENS = (4, 2)
"""Lengths of the token runs that are looked up; the first that is found counts."""
MAX_SUFFIX = 12
"""How far back a match is followed: beyond that, a longer one says no more."""
MAX_INDEXED = 4096
"""Tokens that are taken into the index at once, 2 to 3 ms; a longer prompt is caught up with over some steps."""


class PromptLookup:
    """An index of a list of tokens that grows at its end; the list stays its owner's."""

    def __init__(self, token_ids: list[int]) -> None:
        self._token_ids = token_ids
        self._followers: tuple[dict[tuple[int, ...], int], ...] = tuple({} for _ in NUM_TOKENS)
        """For each length: where the tokens go on that followed a run of it the last time."""
        self._num_indexed = 0

    def guess(self, most: int) -> tuple[list[int], int]:
        """Up to `most` tokens that may follow, and how many tokens before them are the same as now; none is ([], 0)."""
        if not self._catch_up():
            return [], 0
        token_ids = self._token_ids
        for length, followers in zip(NUM_TOKENS, self._followers, strict=True):
            start = followers.get(tuple(token_ids[-length:]))
            if start is not None:
                return self._copy(start, most), self._suffix(start)
        return [], 0

    def _catch_up(self) -> bool:
        """Take in what is new, but for the last token, which nothing follows; whether that was all."""
        token_ids = self._token_ids
        end = min(len(token_ids) - 1, self._num_indexed + MAX_INDEXED)
        for length, followers in zip(NUM_TOKENS, self._followers, strict=True):
            for last in range(max(self._num_indexed, length - 1), end):
                followers[tuple(token_ids[last + 1 - length : last + 1])] = last + 1
        self._num_indexed = max(end, self._num_indexed)
        return end == len(token_ids) - 1

    def _copy(self, start: int, most: int) -> list[int]:
        """What follows at `start`; where that reaches the end of the context, the guesses go on repeating."""
        period = self._token_ids[start:]
        repeats = -(-most // len(period))
        return (period * repeats)[:most] if repeats > 1 else period[:most]

    def _suffix(self, start: int) -> int:
        """How many tokens before `start` are those at the end."""
        token_ids, length = self._token_ids, 0
        longest = min(MAX_SUFFIX, start)
        while length < longest and token_ids[start - 1 - length] == token_ids[-1 - length]:
            length += 1
        return length
