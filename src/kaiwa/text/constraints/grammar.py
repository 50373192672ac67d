"""A grammar at work: which tokens may come next in one answer, asked before each token and told each that was drawn.

The work is llguidance's; `text.constraints.grammars` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaiwa.errors import KaiwaError

if TYPE_CHECKING:
    from llguidance import LLMatcher


@dataclass(frozen=True, slots=True)
class Trigger:
    """The token that a constrained part begins with, and those around thoughts, in which it means nothing."""

    token_id: int
    thinks: tuple[int, int] | None = None
    is_thinking: bool = False


class Grammar:
    """What one answer may still say. It belongs to one answer and one thread at a time."""

    def __init__(
        self,
        matcher: LLMatcher,
        *,
        num_bytes: int,
        end_ids: frozenset[int],
        trigger: Trigger | None = None,
        is_once: bool = False,
    ) -> None:
        self._compiled = matcher
        self._num_bytes = num_bytes
        self._end_ids = end_ids
        self._trigger = trigger
        self._is_once = is_once
        self._is_thinking = trigger is not None and trigger.is_thinking
        self._is_first = True
        self._matcher: LLMatcher | None = None if trigger else matcher.deep_copy()
        self.is_done = False
        """Whether nothing may follow but the end."""

    @property
    def is_free(self) -> bool:
        """Whether all tokens may come next."""
        return self._matcher is None

    def allowed(self) -> bytes | None:
        """The tokens that may come next, as `Slice.allowed` has them; None where all may.

        Raises `KaiwaError` where that takes more than llguidance's limits of time and memory allow.
        """
        if self._matcher is None:
            return None
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise KaiwaError(
                f"the grammar is too complex to go on: {reason_of(self._matcher)}", hint="use a simpler schema"
            )
        return mask[: self._num_bytes]

    def num_free(self, token_ids: Sequence[int]) -> int:
        """After how many of these tokens, should they come, all may still come."""
        if self._trigger is None or not self.is_free:
            return 0
        return next((n for n, token_id in enumerate(token_ids) if token_id == self._trigger.token_id), len(token_ids))

    def forced(self) -> tuple[int, ...]:
        """Tokens that must come next, whatever a model thinks of them: they are computed and pushed, but not drawn."""
        return () if self._matcher is None or self.is_done else tuple(self._matcher.compute_ff_tokens())

    def push(self, token_id: int) -> None:
        """A token was drawn. Raises `KaiwaError` where it is none of those that were allowed."""
        if token_id in self._end_ids:
            self.is_done = True
            return
        if self._matcher is None:
            self._watch(token_id)
            return
        if not self._matcher.consume_token(token_id):
            raise KaiwaError(f"the token {token_id} does not fit the grammar: {self._matcher.get_error()}")
        if self._matcher.is_stopped():
            self._leave()

    def _watch(self, token_id: int) -> None:
        """Look for the trigger in a part of the answer that is free."""
        assert self._trigger is not None
        opens, closes = self._trigger.thinks or (-1, -1)
        if token_id == closes:
            self._is_thinking = False
        elif token_id == opens and self._is_first:
            self._is_thinking = True
        elif token_id == self._trigger.token_id and not self._is_thinking:
            self._matcher = self._compiled.deep_copy()
        self._is_first = False

    def _leave(self) -> None:
        """The constrained part is whole."""
        if self._trigger is None or self._is_once:
            self.is_done = True
        else:
            self._matcher = None


def reason_of(matcher: LLMatcher) -> str:
    """The words of llguidance's error, without the place in a source that nobody wrote by hand."""
    lines = matcher.get_error().splitlines() or [""]
    said = next((line for line in lines if line.startswith("error: ")), lines[0])
    return said.removeprefix("error: ").rpartition("failed to compile JSON schema: ")[2]
