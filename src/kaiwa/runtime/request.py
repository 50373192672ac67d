"""One answer in the making: the tokens that are known, what to compute next, and what events come of it.

It calls no engine and waits for nothing, so that many of them can be mixed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kaiwa.engines.engine import EngineInfo, Logprobs, Sampled, Slice
from kaiwa.errors import ContextOverflow, InvalidMessages
from kaiwa.events import Event, Finished, FinishReason, PromptProgress, Queued, ReasoningDelta, Timings, ToolCall, Usage
from kaiwa.runtime.answer_text import AnswerText
from kaiwa.runtime.guesses.draft import Drafter
from kaiwa.runtime.guesses.speculation import Speculator
from kaiwa.runtime.job import Job, State
from kaiwa.sampling import Sampling

NO_SEQUENCE = -1


class Constraint(Protocol):
    """Says which tokens may come next."""

    def allowed(self) -> bytes | None:
        """The mask in the layout of `Slice.allowed`; None where all may come."""
        ...

    def forced(self) -> Sequence[int]:
        """Tokens that come next whatever the model thinks of them: they are computed, and not drawn."""
        ...

    def num_free(self, token_ids: Sequence[int]) -> int:
        """After how many of these tokens all may still come: so many may be guessed."""
        ...

    def push(self, token_id: int) -> None:
        """A token was sampled, or forced."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether all tokens may come next."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether nothing may follow."""
        ...


class Reader(Protocol):
    """Whoever gets the events. It is called in the engine's thread, and must not wait."""

    def deliver(self, events: list[Event]) -> None:
        """The next events of the answer."""
        ...

    def wake(self) -> None:
        """Comes after `deliver`, once all readers have what is theirs: those that share a way are told once."""
        ...

    def fail(self, error: BaseException) -> None:
        """The error that ends the answer; nothing comes after it."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked. `sampling` has a seed, `asked_at` is the `time.perf_counter` of the call."""

    token_ids: Sequence[int]
    sampling: Sampling
    asked_at: float
    client: str = ""
    """Who asks: requests of several are answered in turn, and nobody uses what was read for another."""
    num_logprobs: int | None = None
    drafter: Drafter | None = None
    """A smaller model that guesses at the answer."""

    def check(self, info: EngineInfo) -> None:
        """Whether an engine can answer it.

        Raises `InvalidMessages` if it is empty or has tokens that the model does not know, `ContextOverflow` if the
        context has no place for one token of an answer.
        """
        if not self.token_ids:
            raise InvalidMessages("the prompt has no tokens", hint="give the model something to go on from")
        if min(self.token_ids) < 0 or max(self.token_ids) >= info.vocab_size:
            wrong = next(token_id for token_id in self.token_ids if not 0 <= token_id < info.vocab_size)
            raise InvalidMessages(f"the prompt has the token {wrong}, and the model knows 0 to {info.vocab_size - 1:,}")
        if len(self.token_ids) >= info.context_length:
            raise ContextOverflow(len(self.token_ids), info.context_length)


class Request(Job):
    """The state of one answer. `sequence` is the engine's, in which the first `num_computed` tokens are."""

    def __init__(
        self,
        prompt: Prompt,
        text: AnswerText,
        reader: Reader,
        *,
        context_length: int,
        constraint: Constraint | None = None,
    ) -> None:
        super().__init__(len(prompt.token_ids), prompt.client)
        self.prompt = prompt
        self.reader = reader
        self.token_ids = list(prompt.token_ids)
        """All that are known: the prompt, and what was sampled."""
        self.sequence = NO_SEQUENCE
        self.cached_tokens = 0
        self.begun_at = 0.0
        self.first_token_s = 0.0
        self.speculator: Speculator | None = None
        """Guesses what comes next, where that is wanted."""
        self.place = 0
        """In the queue, as the reader was told last; 0 is nowhere."""
        self.is_over = False
        """Whether `Finished` is among the events that were given out."""
        self.is_heard = False
        """Whether its reader has had something of the answer."""
        self.waits_for: tuple[Request, int] | None = None
        """Another request, and how many tokens it is to compute before this one begins with them."""
        self._text = text
        self._constraint = constraint
        self._allowed = constraint.allowed() if constraint is not None else None
        left = context_length - len(prompt.token_ids)
        self._max_new_tokens = min(prompt.sampling.max_new_tokens or left, left)
        self._prompt_s = 0.0
        self._decode_s = 0.0
        self._has_called = False
        self._is_thinking = False
        self._reasoning_tokens = 0

    @property
    def generated_tokens(self) -> int:
        """How many tokens were sampled."""
        return len(self.token_ids) - len(self.prompt.token_ids)

    @property
    def max_guesses(self) -> int:
        """How many guesses the next slice may have, so that the answer ends where it would end without."""
        if self.state is not State.WRITING or (self._constraint is not None and not self._constraint.is_free):
            return 0
        return self._max_new_tokens - self.generated_tokens - 1

    def wait(self, place: int) -> list[Event]:
        """It stands at this place of the queue."""
        if place == self.place:
            return []
        self.place = place
        return [Queued(place)]

    def next_slice(self, num_tokens: int, guesses: Sequence[int] = ()) -> Slice:
        """What a step computes that has `num_tokens` of the unread ones, and `guesses` at what follows."""
        end = self.num_computed + num_tokens
        token_ids = self.token_ids[self.num_computed : end]
        if end < len(self.token_ids):
            return Slice(self.sequence, token_ids, sample=False)
        if self._constraint is not None:
            guesses = guesses[: self._constraint.num_free(guesses)]
        return Slice(
            self.sequence,
            [*token_ids, *guesses] if guesses else token_ids,
            num_guesses=len(guesses),
            allowed=self._allowed,
            num_logprobs=self.prompt.num_logprobs,
        )

    def accept(self, sampled: Sampled | None, *, step_s: float) -> list[Event]:
        """The events that come of a step of `step_s` seconds. The last one is `Finished` where the answer ends."""
        if self.generated_tokens:
            self._decode_s += step_s
        else:
            self._prompt_s += step_s
        if sampled is None:
            return self._read_on()
        if not self.generated_tokens:
            self.first_token_s = time.perf_counter() - self.prompt.asked_at
        events: list[Event] = []
        for place, token_id in enumerate(sampled.token_ids):
            events += self._take(token_id, sampled.logprobs[place] if sampled.logprobs else None)
            if self.is_over:
                return events
        return events + self._go_on()

    def _take(self, token_id: int, logprobs: Logprobs | None = None) -> list[Event]:
        """The events of one more token of the answer, which may end it."""
        self.token_ids.append(token_id)
        events, is_over = self._text.push(token_id, logprobs)
        for event in events:
            self._has_called = self._has_called or isinstance(event, ToolCall)
            self._is_thinking = isinstance(event, ReasoningDelta)
        self._reasoning_tokens += self._is_thinking
        if self._constraint is not None:
            self._constraint.push(token_id)
            is_over = is_over or self._constraint.is_done
        if is_over:
            return events + self._finish("stop")
        if self.generated_tokens == self._max_new_tokens:
            return events + self._finish("length")
        return events

    def _go_on(self) -> list[Event]:
        """Take the tokens that must come next, and look at what may come after them."""
        events: list[Event] = []
        if self._constraint is None:
            return events
        if self.prompt.num_logprobs is None:
            for token_id in self._constraint.forced():
                events += self._take(token_id)
                if self.is_over:
                    return events
        self._allowed = self._constraint.allowed()
        return events

    def stop(self) -> list[Event]:
        """The last events of a request that is stopped before its end."""
        return self._finish("cancelled")

    def _read_on(self) -> list[Event]:
        if self.generated_tokens:
            return []  # it had paused, and reads what its reader has seen
        read_tokens = self.num_computed
        return [PromptProgress(read_tokens, len(self.prompt.token_ids), self.cached_tokens)]

    def _finish(self, reason: FinishReason) -> list[Event]:
        """The text that was held back, and the end."""
        events, is_stopped = self._text.finish()
        has_called = self._has_called or any(isinstance(event, ToolCall) for event in events)
        if is_stopped:
            reason = "stop"
        if reason == "stop" and has_called:
            reason = "tool_calls"
        return [*events, self._finished(reason)]

    def _finished(self, reason: FinishReason) -> Finished:
        self.is_over = True
        num_prompt = len(self.prompt.token_ids)
        return Finished(
            reason,
            Usage(num_prompt, self.cached_tokens, self.generated_tokens, self._reasoning_tokens),
            Timings(
                first_token_s=self.first_token_s,
                prompt_s=self._prompt_s,
                decode_s=self._decode_s,
                prompt_tokens_per_s=_rate(min(num_prompt, self.num_computed) - self.cached_tokens, self._prompt_s),
                decode_tokens_per_s=_rate(self.generated_tokens - 1, self._decode_s),
            ),
            stop_string=self._text.stop_string,
        )


def _rate(count: int, seconds: float) -> float:
    return count / seconds if count > 0 and seconds > 0 else 0.0
