"""What the engine has already read: a few sequences kept after their answers, to be continued by the next prompt."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kaiwa.engines.engine import Engine

MAX_SEQUENCES = 4


@dataclass(slots=True, eq=False)
class Lease:
    """A sequence of the engine in one request's hands. `token_ids` is everything that was handed to it, in order."""

    sequence: int
    token_ids: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Match:
    """What a kept sequence offers to a prompt of `num_prompt` tokens: `common` ones, `reusable` by this engine."""

    lease: Lease
    common: int
    reusable: int
    num_prompt: int

    @property
    def is_worth_it(self) -> bool:
        """Whether to cut the sequence down to the `reusable` tokens and go on from there.

        What is cut off has to be read again when its conversation goes on, so two conversations that share no more
        than a system message keep a sequence each. An answer tried again has all but the prompt's last token in common.
        """
        is_retry = self.common == self.num_prompt - 1
        return self.reusable > 0 and (is_retry or 2 * self.reusable >= len(self.lease.token_ids))


class PrefixCache:
    """Keeps up to `max_sequences` sequences that together hold at most one full context.

    One thread at a time calls it, as it calls the engine; only `give_back` may be called from anywhere.
    """

    def __init__(self, engine: Engine, *, max_sequences: int = MAX_SEQUENCES) -> None:
        self._engine = engine
        self._max_sequences = max_sequences
        self._kept: list[Lease] = []
        """The least recently used one first."""
        self._returned: deque[Lease] = deque()

    def lease(self, prompt_ids: Sequence[int]) -> Lease:
        """A sequence that holds the longest known beginning of the prompt, never all of it.

        The prompt's last token is always left to compute, as the answer's first token is sampled after it.
        """
        self._take_back()
        matches = [self._match(kept, prompt_ids) for kept in self._kept]
        best = max(matches, key=lambda match: match.reusable, default=None)
        if best is not None and best.is_worth_it:
            self._kept.remove(best.lease)
            self._cut(best.lease, best.reusable)
            return best.lease
        while len(self._kept) >= self._max_sequences:
            self._forget_oldest()
        return Lease(self._engine.open())

    def make_room(self, num_tokens: int) -> None:
        """Forget old sequences until `num_tokens` more fit beside what is kept."""
        info = self._engine.info
        while self._kept and (
            num_tokens + self._num_kept_tokens() > info.context_length
            or self._engine.num_free_tokens() < info.max_step_tokens
        ):
            self._forget_oldest()

    def give_back(self, lease: Lease) -> None:
        """Keep a sequence for later. Any thread may call this at any time; it takes effect with the next `lease`."""
        self._returned.append(lease)

    def discard(self, lease: Lease) -> None:
        """Close a sequence that is in an unknown state."""
        self._engine.close(lease.sequence)

    def _take_back(self) -> None:
        while self._returned:
            lease = self._returned.popleft()
            # An interrupted step may have computed its tokens or not: the engine knows.
            length = min(self._engine.length(lease.sequence), len(lease.token_ids))
            if length == 0:
                self._engine.close(lease.sequence)
                continue
            self._cut(lease, length)
            self._kept.append(lease)

    def _match(self, kept: Lease, prompt_ids: Sequence[int]) -> _Match:
        common = min(common_prefix(kept.token_ids, prompt_ids), len(prompt_ids) - 1)
        return _Match(kept, common, self._engine.keepable(kept.sequence, common), len(prompt_ids))

    def _cut(self, lease: Lease, length: int) -> None:
        self._engine.truncate(lease.sequence, length)
        del lease.token_ids[self._engine.length(lease.sequence) :]

    def _forget_oldest(self) -> None:
        self._engine.close(self._kept.pop(0).sequence)

    def _num_kept_tokens(self) -> int:
        return sum(len(kept.token_ids) for kept in self._kept)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    differ = (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(differ, min(len(a), len(b)))
