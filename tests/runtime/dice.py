"""An engine that throws dice: the native sampler over chances that follow from all tokens before."""

from __future__ import annotations

import array
import math
from collections.abc import Sequence

from kaiwa.engines.engine import Slice
from kaiwa.engines.native import _native
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.sampling import Sampling
from small_model import END

LETTERS = b"abcdefgh"


class Dice(ScriptedEngine):
    """`sides` of the letters may come; the same letters before give the same chances."""

    def __init__(self, *, sides: int = 8) -> None:
        super().__init__(lambda ids: [], end_id=END, vocab_size=258)
        self.sides = sides
        self.seeds: list[int | None] = []
        self._samplers: dict[int, _native.Sampler] = {}

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        self.seeds.append(sampling.seed)
        values = {**sampling.to_dict(), "greedy": sampling.is_greedy, "logit_bias": []}
        for name in ("do_sample", "stop", "max_new_tokens"):
            del values[name]
        self._samplers[sequence] = _native.Sampler(**values, vocab_size=258)

    def logits(self, token_ids: Sequence[int]) -> list[float]:
        """Of the letters, after these tokens."""
        return [float((sum(token_ids[-4:]) * (place + 3)) % 7) / 3 for place in range(self.sides)]

    def chances(self, token_ids: Sequence[int]) -> list[float]:
        """Of the letters, after these tokens, at temperature 1."""
        weights = [math.exp(logit) for logit in self.logits(token_ids)]
        return [weight / sum(weights) for weight in weights]

    def _next(self, part: Slice) -> int:
        logits = array.array("f", [-100.0] * 258)
        for letter, logit in zip(LETTERS, self.logits(self._tokens[part.sequence]), strict=False):
            logits[letter] = logit
        return self._samplers[part.sequence].sample(logits)
