"""Drafts: a smaller model writes ahead, and its words are guesses at what the larger one says.

Both may have tokens of their own: then the text goes from one to the other.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from kaiwa.engines.engine import Engine, Slice
from kaiwa.errors import ContextOverflow, KaiwaError, OutOfMemory
from kaiwa.runtime.prefixes.radix_tree import common_prefix
from kaiwa.sampling import Sampling
from kaiwa.text.tokens.tokenizer import Tokenizer

GREEDY = Sampling(do_sample=False, seed=0)
MIN_LOGPROB = math.log(0.4)
"""Where the smaller model is less sure of its word than that, the draft ends before it."""
MAX_TAIL = 256
"""Characters of text without a place to cut that are made tokens of again in each step."""
SMOOTHING = 0.2

T = TypeVar("T")
log = logging.getLogger(__name__)


class Assistant(Protocol):
    """Whoever has the smaller model's engine, and lends it between two of its steps."""

    def call(self, function: Callable[[Engine], T], *, num_tokens: int = 0) -> T: ...


class Drafter:
    """The smaller model, for all answers of the larger one."""

    def __init__(self, assistant: Assistant, theirs: Tokenizer, ours: Tokenizer) -> None:
        self.assistant = assistant
        self.theirs = theirs
        self.ours = ours
        self.is_same = _are_same(theirs, ours)
        self.token_s = 0.0
        """What a token of a draft takes, lately; 0 as long as that is not known."""
        self.is_lost = False
        """Whether the assistant was closed."""

    def measure(self, token_s: float) -> None:
        """A token took so long."""
        self.token_s += (token_s - self.token_s) * SMOOTHING if self.token_s else token_s


class Draft:
    """The smaller model's sequence for one answer, whose tokens `token_ids` grow in their owner's hands."""

    def __init__(self, drafter: Drafter, token_ids: list[int]) -> None:
        self._drafter = drafter
        self._token_ids = token_ids
        self._sequence: int | None = None
        self._computed: list[int] = []
        self._settled: list[int] = []
        self._num_settled = 0
        """How many of our tokens the settled ones of theirs stand for."""

    @property
    def token_s(self) -> float:
        """What each guess costs to make."""
        return self._drafter.token_s

    def guess(self, most: int) -> list[int]:
        """Up to `most` of our tokens that the smaller model would say; none where it has yet to read, or fails."""
        if self._drafter.is_lost:
            return []
        context = self._context()
        try:
            num_tokens = len(context) - len(self._computed) + most
            said = self._drafter.assistant.call(
                lambda engine: self._write(engine, context, most), num_tokens=num_tokens
            )
        except (OutOfMemory, ContextOverflow):
            self.close()
            return []
        except Exception as error:  # noqa: BLE001  (whatever it is, the answer goes on without)
            log.warning("the assistant guesses no more: %s", error)
            self._drafter.is_lost = True
            return []
        if self._drafter.is_same or not said:
            return said
        text = self._drafter.theirs.decode(said)
        return self._drafter.ours.encode_rest(text)[:most] if "\ufffd" not in text else []

    def close(self) -> None:
        """Give the sequence's memory back."""
        sequence, self._sequence = self._sequence, None
        self._computed = []
        if sequence is not None and not self._drafter.is_lost:
            try:
                self._drafter.assistant.call(lambda engine: engine.close(sequence))
            except KaiwaError:  # the assistant was closed, and everything of it is gone
                self._drafter.is_lost = True

    def _context(self) -> list[int]:
        """All that is known, in the smaller model's tokens."""
        if self._drafter.is_same:
            return self._token_ids
        tail = self._drafter.ours.decode(self._token_ids[self._num_settled :])
        encode = self._drafter.theirs.encode_rest if self._settled else self._drafter.theirs.encode
        context = [*self._settled, *encode(tail)]
        if len(tail) > MAX_TAIL:
            self._settled, self._num_settled = context, len(self._token_ids)
        return context

    def _write(self, engine: Engine, context: list[int], most: int) -> list[int]:
        """Read what is new, at most one step's worth of it, and go on from there."""
        if len(context) + most >= engine.info.context_length:
            return []
        if self._sequence is None:
            self._sequence = engine.open()
            engine.configure(self._sequence, GREEDY, prompt_ids=context)
        same = min(common_prefix(self._computed, context), len(context) - 1)
        engine.truncate(self._sequence, same)
        begin = engine.length(self._sequence)
        new = context[begin : begin + engine.info.max_step_tokens]
        is_last = begin + len(new) == len(context)
        [sampled] = engine.step([Slice(self._sequence, new, sample=is_last, num_logprobs=0 if is_last else None)])
        self._computed = context[: begin + len(new)]
        said: list[int] = []
        started = time.perf_counter()
        while sampled is not None and sampled.logprobs and sampled.logprobs[0].sampled >= MIN_LOGPROB:
            said.append(sampled.token_ids[0])
            if len(said) >= most:
                break
            [sampled] = engine.step([Slice(self._sequence, said[-1:], num_logprobs=0)])
            self._computed.append(said[-1])
        if len(said) > 1:
            self._drafter.measure((time.perf_counter() - started) / (len(said) - 1))
        return said


def _are_same(one: Tokenizer, other: Tokenizer) -> bool:
    """Whether each token id stands for the same in both."""
    size = one.vocab_size
    return size == other.vocab_size and all(
        one.token_bytes(token_id) == other.token_bytes(token_id)
        and one.is_control(token_id) == other.is_control(token_id)
        for token_id in range(size)
    )
