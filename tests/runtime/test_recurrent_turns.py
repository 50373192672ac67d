"""Turns of a conversation with a recurrent model: what it has read is used again, and changes no answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from driving import GREEDY, continue_greedily, loaded, next_token, start
from kaiwa.engines.engine import Engine
from kaiwa.engines.native.states import CHECKPOINT_MARGIN
from kaiwa.runtime.prefixes.prefix_cache import PrefixCache

HYBRID = Path(__file__).parents[1] / "golden" / "families" / "qwen3.5"


def answer(engine: Engine, cache: PrefixCache, prompt: list[int]) -> tuple[int, list[int]]:
    """How many tokens of the prompt were known, and eight tokens of an answer."""
    sequence, num_cached = cache.open(prompt, "")
    engine.configure(sequence, GREEDY, prompt_ids=prompt)
    token = next_token(engine, sequence, prompt[num_cached:])
    text = continue_greedily(engine, sequence, token, 8)
    cache.keep(sequence, [*prompt, *text[:-1]], "")
    return num_cached, text


def test_a_conversation_whose_thoughts_are_left_out_reads_little_again() -> None:
    rng = np.random.default_rng(3)
    first: list[int] = rng.integers(4, 256, 60).tolist()
    with loaded(HYBRID) as engine, loaded(HYBRID) as fresh:
        cache = PrefixCache(engine)
        num_cached, text = answer(engine, cache, first)
        assert (num_cached, text) == (0, continue_greedily(fresh, *start(fresh, first), 8))
        # The template begins the answer otherwise once it is told, and leaves out the thought at its beginning.
        second = [*first[:-4], 9, 8, *text[3:], *rng.integers(4, 256, 30).tolist()]
        num_cached, text = answer(engine, cache, second)
        assert num_cached == len(first) - CHECKPOINT_MARGIN
        assert text == continue_greedily(fresh, *start(fresh, second), 8)
        assert answer(engine, cache, second) == (len(second) - CHECKPOINT_MARGIN, text), "asked again"
        third = [*second, *text[:-1], 7, 6, 5]
        num_cached, text = answer(engine, cache, third)
        assert num_cached == len(third) - 3, "a conversation that goes on as it was keeps all"
        assert text == continue_greedily(fresh, *start(fresh, third), 8)
