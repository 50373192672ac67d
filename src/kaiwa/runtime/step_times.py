"""How long a step takes by the number of tokens it computes, learned from the steps there were.

A token costs the same whether it is one of a prompt, the next of an answer, or a guess.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from statistics import median_low

FIRST_TOKENS = 64
"""What a step may have as long as nothing is known."""
REMEMBERED = 5
"""Steps of one size whose median counts: one that the machine disturbed says nothing."""
USUAL_COST = 0.2
"""What another token costs beside the first, as long as nothing was measured."""
STALE_AFTER = 100
"""Steps after which a larger size is forgotten, so that what was slow once is tried again."""


class StepTimes:
    """Medians of seconds for each size up to 16, and from there for eight sizes in each doubling."""

    def __init__(self) -> None:
        self._seconds: dict[int, deque[float]] = {}
        self._medians: dict[int, float] = {}
        self._last: dict[int, int] = {}
        self._sizes: list[int] = []
        self._num_steps = 0

    def observe(self, num_tokens: int, seconds: float) -> None:
        """A step of `num_tokens` took `seconds`."""
        size = _rounded(num_tokens)
        if size not in self._seconds:
            self._seconds[size] = deque(maxlen=REMEMBERED)
            self._sizes = sorted([*self._sizes, size])
        self._seconds[size].append(seconds * size / num_tokens)
        self._medians[size] = median_low(self._seconds[size])
        self._num_steps += 1
        self._last[size] = self._num_steps
        largest = self._sizes[-1]
        if largest > size and self._num_steps - self._last[largest] > STALE_AFTER:
            self._forget(largest)

    def predict(self, num_tokens: int) -> float | None:
        """Seconds of a step of `num_tokens`; None as long as nothing is known.

        Between two known sizes on the line between them, beyond the largest in proportion.
        """
        if not self._sizes:
            return None
        place = bisect_left(self._sizes, num_tokens)
        if place == len(self._sizes):
            return self._medians[self._sizes[-1]] * num_tokens / self._sizes[-1]
        right = self._sizes[place]
        if right == num_tokens or place == 0:
            return self._medians[right]
        left = self._sizes[place - 1]
        share = (num_tokens - left) / (right - left)
        return self._medians[left] * (1 - share) + self._medians[right] * share

    def estimate(self, num_tokens: int) -> float:
        """As `predict`, but beyond the largest known size with what more tokens of a few usually cost: to be tried."""
        largest = self._sizes[-1] if self._sizes else 1
        if num_tokens <= largest:
            return self.predict(num_tokens) or 1.0
        return (self.predict(largest) or 1.0) * (1 + USUAL_COST * (num_tokens - largest) / largest)

    def fitting(self, seconds: float, most: int) -> int:
        """How many tokens, up to `most`, a step may have to take no longer than `seconds`; 0 where one takes longer."""
        if not self._sizes:
            return min(FIRST_TOKENS, most)
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if (self.predict(middle) or 0.0) <= seconds:
                low = middle
            else:
                high = middle - 1
        return low

    def _forget(self, size: int) -> None:
        del self._seconds[size], self._medians[size], self._last[size]
        self._sizes.remove(size)


def _rounded(num_tokens: int) -> int:
    """The largest size that is remembered and not above `num_tokens`."""
    step = 1 << max(num_tokens.bit_length() - 4, 0)
    return num_tokens // step * step
