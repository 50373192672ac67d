"""One answer in the making: which tokens to compute next, and what events come of the tokens that are sampled.

It calls no engine and waits for nothing, so that whoever drives it may mix many of them.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kaiwa.engines.engine import EngineInfo
from kaiwa.errors import ContextOverflow, InvalidMessages
from kaiwa.events import Event, Finished, FinishReason, PromptProgress, TextDelta, Timings, Usage
from kaiwa.sampling import Sampling
from kaiwa.text.decoder import Decoder
from kaiwa.text.stop_strings import StopStrings


class State(enum.Enum):
    """WAITING → READING → WRITING → FINISHED; a request that is stopped goes to FINISHED from anywhere."""

    WAITING = "waiting for its turn"
    READING = "reading the prompt"
    WRITING = "writing the answer"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked. `sampling` has a seed, `asked_at` is the `time.perf_counter` of the call."""

    token_ids: Sequence[int]
    sampling: Sampling
    end_ids: Collection[int]
    asked_at: float

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


class Request:
    """The state of one answer: `begin`, then compute `next_tokens` and `accept` what was sampled, until FINISHED."""

    def __init__(self, prompt: Prompt, decoder: Decoder, *, context_length: int, max_step_tokens: int) -> None:
        self.state = State.WAITING
        self._prompt = prompt
        self._decoder = decoder
        self._stop_strings = StopStrings(prompt.sampling.stop)
        self._max_step_tokens = max_step_tokens
        self._cached_tokens = 0
        self._read_tokens = 0
        self._last_id = -1
        self._generated_tokens = 0
        left = context_length - len(prompt.token_ids)
        self._max_new_tokens = min(prompt.sampling.max_new_tokens or left, left)
        self._prompt_s = 0.0
        self._decode_s = 0.0
        self._first_token_s = 0.0

    def begin(self, cached_tokens: int) -> list[Event]:
        """The turn has come, and the first `cached_tokens` of the prompt need not be read."""
        self._cached_tokens = self._read_tokens = cached_tokens
        self.state = State.READING
        return []

    def next_tokens(self) -> tuple[Sequence[int], bool]:
        """The token ids to compute next, and whether one is to be sampled after them."""
        if self.state is State.WRITING:
            return [self._last_id], True
        end = min(self._read_tokens + self._max_step_tokens, len(self._prompt.token_ids))
        return self._prompt.token_ids[self._read_tokens : end], end == len(self._prompt.token_ids)

    def accept(self, token_id: int | None, *, step_s: float) -> list[Event]:
        """The events that come of a step, which took `step_s` seconds and sampled `token_id`."""
        if token_id is None:
            return self._read_on(step_s)
        if self.state is State.READING:
            self._read_tokens = len(self._prompt.token_ids)
            self._prompt_s += step_s
            self._first_token_s = time.perf_counter() - self._prompt.asked_at
            self.state = State.WRITING
        else:
            self._decode_s += step_s
        self._generated_tokens += 1
        self._last_id = token_id
        return self._write(token_id)

    def stop(self) -> list[Event]:
        """The last events of a request that is stopped before its end."""
        return self._finish("cancelled")

    def _read_on(self, step_s: float) -> list[Event]:
        self._read_tokens += self._max_step_tokens
        self._prompt_s += step_s
        return [PromptProgress(self._read_tokens, len(self._prompt.token_ids), self._cached_tokens)]

    def _write(self, token_id: int) -> list[Event]:
        if token_id in self._prompt.end_ids:
            return self._finish("stop")
        text, is_stopped = self._stop_strings.push(self._decoder.push(token_id))
        if is_stopped:
            return [*_delta(text), self._finished("stop")]
        if self._generated_tokens == self._max_new_tokens:
            return [*_delta(text), *self._finish("length")]
        return _delta(text)

    def _finish(self, reason: FinishReason) -> list[Event]:
        """The text that was held back, and the end."""
        text, is_stopped = self._stop_strings.push(self._decoder.flush())
        if is_stopped:
            return [*_delta(text), self._finished("stop")]
        return [*_delta(text + self._stop_strings.flush()), self._finished(reason)]

    def _finished(self, reason: FinishReason) -> Finished:
        self.state = State.FINISHED
        new_tokens = self._read_tokens - self._cached_tokens
        return Finished(
            reason,
            Usage(len(self._prompt.token_ids), self._cached_tokens, self._generated_tokens),
            Timings(
                first_token_s=self._first_token_s,
                prompt_s=self._prompt_s,
                decode_s=self._decode_s,
                prompt_tokens_per_s=_rate(new_tokens, self._prompt_s),
                decode_tokens_per_s=_rate(self._generated_tokens - 1, self._decode_s),
            ),
        )


def _delta(text: str) -> list[Event]:
    return [TextDelta(text)] if text else []


def _rate(count: int, seconds: float) -> float:
    return count / seconds if count > 0 and seconds > 0 else 0.0
