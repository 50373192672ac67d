"""A deterministic engine that needs no weights: for tests, tutorials and interfaces.

It answers every prompt with the token ids it was given, one per step, then with `end_id` for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kaiwa.engines.engine import EngineInfo, Slice
from kaiwa.errors import ContextOverflow
from kaiwa.sampling import Sampling


class ScriptedEngine:
    """An Engine whose answers are a function of the prompt.

    `answer` receives all token ids of the sequence at the moment its prompt ends and returns the token ids to say.
    `delay_s` is slept before every step, as a model would take its time.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[int]], Sequence[int]],
        *,
        end_id: int,
        vocab_size: int,
        context_length: int = 4096,
        delay_s: float = 0.0,
    ) -> None:
        self._answer = answer
        self._end_id = end_id
        self._delay_s = delay_s
        self._tokens: dict[int, list[int]] = {}
        self._pending: dict[int, list[int]] = {}
        self._next_sequence = 0
        self.steps: list[tuple[Slice, ...]] = []
        """Every step that was asked for, in order."""
        self.info = EngineInfo(
            name="scripted",
            family="scripted",
            number_format="none",
            vocab_size=vocab_size,
            context_length=context_length,
            num_parameters=0,
            weights_bytes=0,
            cache_bytes_per_token=0,
            max_step_tokens=512,
        )

    def open(self) -> int:
        sequence = self._next_sequence
        self._next_sequence += 1
        self._tokens[sequence] = []
        return sequence

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        self._pending.pop(sequence, None)

    def length(self, sequence: int) -> int:
        return len(self._tokens[sequence])

    def keepable(self, sequence: int, length: int) -> int:
        return min(length, len(self._tokens[sequence]))

    def truncate(self, sequence: int, length: int) -> None:
        del self._tokens[sequence][length:]

    def close(self, sequence: int) -> None:
        del self._tokens[sequence]
        self._pending.pop(sequence, None)

    def step(self, batch: Sequence[Slice]) -> list[int | None]:
        if self._delay_s:
            time.sleep(self._delay_s)
        self.steps.append(tuple(batch))
        return [self._step_one(part) for part in batch]

    def _step_one(self, part: Slice) -> int | None:
        tokens = self._tokens[part.sequence]
        if len(tokens) + len(part.token_ids) > self.info.context_length:
            raise ContextOverflow(len(tokens) + len(part.token_ids), self.info.context_length)
        tokens.extend(part.token_ids)
        if not part.sample:
            return None
        if part.sequence not in self._pending:
            self._pending[part.sequence] = list(self._answer(tuple(tokens)))
        pending = self._pending[part.sequence]
        return pending.pop(0) if pending else self._end_id

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        raise NotImplementedError("a scripted engine has no probabilities")

    def shutdown(self) -> None:
        self._tokens.clear()
