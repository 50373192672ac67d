"""Speculative decoding: how many guesses at the next tokens are worth checking.

The engine samples each token as it would without guesses, so that none of them changes an answer; they only decide how
many tokens one step brings. A guess costs time whether it is right or not. What it costs is measured, what it brings is
estimated from how often guesses like it were right in this answer, and they are made where that pays: so a text that
nobody could guess costs next to nothing. Now and then one is tried all the same, as texts change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kaiwa.runtime.guesses.draft import Draft
from kaiwa.runtime.guesses.prompt_lookup import PromptLookup

MAX_GUESSES = 24
MEMORY = 0.8
"""What earlier guesses count beside the last."""
PROBE_AFTER = 48
"""Tokens without a guess after which one is made whatever the odds."""

FIRST_ODDS = {2: (1.0, 1.5), 3: (2.0, 1.5), 4: (3.0, 1.0), 6: (5.0, 1.0), 9: (9.0, 1.0), 12: (15.0, 1.0)}
"""By the tokens of the context that speak for a guess, at least: how many right ones it begins with, and wrong ones."""
FIRST_DRAFT_ODDS = (4.0, 1.0)


@dataclass(slots=True)
class Odds:
    """How often guesses of one kind were right."""

    num_right: float
    num_wrong: float

    @property
    def chance(self) -> float:
        """That of the next guess, when those before it were right."""
        return self.num_right / (self.num_right + self.num_wrong)

    def learn(self, num_guesses: int, num_right: int) -> None:
        """Of so many guesses in a row, the first ones were right; what follows a wrong one says nothing."""
        self.num_right = self.num_right * MEMORY + num_right
        self.num_wrong = self.num_wrong * MEMORY + (num_right < num_guesses)


class Speculator:
    """The guesses at one answer."""

    def __init__(self, token_ids: list[int], draft: Draft | None = None) -> None:
        self._lookup = PromptLookup(token_ids)
        self._draft = draft
        self._draft_odds = Odds(*FIRST_DRAFT_ODDS)
        self._odds = {length: Odds(*first) for length, first in FIRST_ODDS.items()}
        self._last: Odds | None = None
        self._num_unguessed = 0

    def guess(self, most: int, *, num_others: int, step_s: Callable[[int], float]) -> list[int]:
        """Up to `most` tokens that may come next.

        The step brings `num_others` tokens for others, and takes `step_s(number)` seconds with that many guesses.
        """
        self._last = None
        self._num_unguessed += 1
        if most < 1:
            return []
        most = min(most, MAX_GUESSES)
        guesses, num_same = self._lookup.guess(most)
        if guesses:
            odds = self._odds[max(length for length in self._odds if length <= max(num_same, min(self._odds)))]
            number = self._number(odds, len(guesses), num_others, step_s)
            if number:
                return guesses[:number]
        if self._draft is None or num_others:
            return []
        cost_s = self._draft.token_s
        number = self._number(self._draft_odds, most, 0, lambda number: step_s(number) + number * cost_s)
        return self._draft.guess(number) if number else []

    def close(self) -> None:
        """The answer is over."""
        if self._draft is not None:
            self._draft.close()

    def _number(self, odds: Odds, most: int, num_others: int, step_s: Callable[[int], float]) -> int:
        """How many guesses of these odds to make; now and then one whatever the odds."""
        number = best_number(odds.chance, most, num_others=num_others, step_s=step_s)
        if number == 0 and self._num_unguessed >= PROBE_AFTER:
            number = 1
        if number:
            self._last, self._num_unguessed = odds, 0
        return number

    def learn(self, num_guesses: int, num_right: int) -> None:
        """What became of the last guesses."""
        if self._last is not None:
            self._last.learn(num_guesses, num_right)


def best_number(chance: float, most: int, *, num_others: int, step_s: Callable[[int], float]) -> int:
    """How many guesses, each right with this chance when those before it are, bring the most tokens per second."""
    best, best_rate = 0, (num_others + 1) / step_s(0)
    expected, all_right = 1.0, 1.0
    for number in range(1, most + 1):
        all_right *= chance
        expected += all_right
        rate = (num_others + expected) / step_s(number)
        if rate > best_rate:
            best, best_rate = number, rate
    return best
