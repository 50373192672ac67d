"""A deterministic engine that needs no weights: for tests, tutorials and interfaces.

It answers every prompt with the token ids it was given, one per step, then with `end_id` for ever.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence

from kaiwa.engines.engine import EngineInfo, Logprobs, Pooling, Sampled, Slice
from kaiwa.errors import ContextOverflow, OutOfMemory, UnusableFile
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
        cache_tokens: int | None = None,
        delay_s: float = 0.0,
    ) -> None:
        self._answer = answer
        self._end_id = end_id
        self._delay_s = delay_s
        self._tokens: dict[int, list[int]] = {}
        self._scripts: dict[int, tuple[int, Sequence[int]]] = {}
        """What is said in each sequence, and the length at which that begins."""
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
            cache_tokens=4 * context_length if cache_tokens is None else cache_tokens,
        )

    def open(self) -> int:
        sequence = self._next_sequence
        self._next_sequence += 1
        self._tokens[sequence] = []
        return sequence

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        self._scripts.pop(sequence, None)

    def length(self, sequence: int) -> int:
        return len(self._tokens[sequence])

    def keepable(self, sequence: int, length: int) -> int:
        return min(length, len(self._tokens[sequence]))

    def truncate(self, sequence: int, length: int) -> None:
        del self._tokens[sequence][length:]

    def fork(self, sequence: int, length: int) -> int:
        twin = self.open()
        self._tokens[twin] = self._tokens[sequence][:length]
        return twin

    def num_free_tokens(self) -> int:
        return self.info.cache_tokens - sum(map(len, self._tokens.values()))

    def close(self, sequence: int) -> None:
        del self._tokens[sequence]
        self._scripts.pop(sequence, None)

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        if self._delay_s:
            time.sleep(self._delay_s)
        num_tokens = sum(len(part.token_ids) for part in batch)
        if num_tokens > self.num_free_tokens():
            raise OutOfMemory(
                f"the step has {num_tokens:,} tokens, and the cache a place for {self.num_free_tokens():,} more",
                hint="close other sequences first",
            )
        self.steps.append(tuple(batch))
        return [self._step_one(part) for part in batch]

    def _step_one(self, part: Slice) -> Sampled | None:
        tokens = self._tokens[part.sequence]
        if len(tokens) + len(part.token_ids) > self.info.context_length:
            raise ContextOverflow(len(tokens) + len(part.token_ids), self.info.context_length)
        certain = len(part.token_ids) - part.num_guesses
        tokens.extend(part.token_ids[:certain])
        if not part.sample:
            return None
        sampled = [self._next(part)]
        for guess in part.token_ids[certain:]:
            if guess != sampled[-1]:
                break
            tokens.append(guess)
            sampled.append(self._next(part))
        logprobs = () if part.num_logprobs is None else tuple(_certain(token, part.num_logprobs) for token in sampled)
        return Sampled(tuple(sampled), logprobs)

    def _next(self, part: Slice) -> int:
        """The next token of the answer, or the lowest one that may be said in its place."""
        tokens = self._tokens[part.sequence]
        if part.sequence not in self._scripts:
            self._scripts[part.sequence] = len(tokens), self._answer(tuple(tokens))
        start, script = self._scripts[part.sequence]
        place = len(tokens) - start
        token = script[place] if place < len(script) else self._end_id
        if part.allowed is None or _is_allowed(part.allowed, token):
            return token
        return next(other for other in range(self.info.vocab_size) if _is_allowed(part.allowed, other))

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        raise NotImplementedError("a scripted engine has no probabilities")

    def embed(self, token_ids: Sequence[int], *, pooling: Pooling = "mean") -> memoryview[float]:
        """The shares of the token ids that leave each remainder by 8, or that of the last one."""
        chosen = token_ids[-1:] if pooling == "last" else token_ids
        shares = [sum(token % 8 == remainder for token in chosen) / len(chosen) for remainder in range(8)]
        return memoryview(array("f", shares))

    def save(self, sequence: int) -> bytes:
        return array("q", self._tokens[sequence]).tobytes()

    def restore(self, saved: bytes) -> int:
        if len(saved) % 8:
            raise UnusableFile("what was saved", "sequence", f"{len(saved)} bytes are no whole number of tokens")
        sequence = self.open()
        self._tokens[sequence] = array("q", saved).tolist()
        return sequence

    def shutdown(self) -> None:
        self._tokens.clear()


def _is_allowed(allowed: bytes, token: int) -> bool:
    return bool(allowed[token // 8] >> token % 8 & 1)


def _certain(token: int, num_best: int) -> Logprobs:
    """A script leaves no doubt: its token has the probability 1."""
    return Logprobs(0.0, ((token, 0.0),)[:num_best])
