"""Kept sequences: the longest beginning is continued, never all of it, and never across a scope."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.prefixes.prefix_cache import Known, PrefixCache


def engine(cache_tokens: int = 1000) -> ScriptedEngine:
    return ScriptedEngine(
        lambda ids: [], end_id=0, vocab_size=100, context_length=cache_tokens, cache_tokens=cache_tokens
    )


def run(
    cache: PrefixCache,
    on: ScriptedEngine,
    prompt: list[int],
    answer: list[int] = [],  # noqa: B006
    scope: str = "a",
) -> int:
    """Read a prompt and an answer; the number of cached tokens."""
    sequence, cached = cache.open(prompt, scope)
    assert prompt[:cached] == on._tokens[sequence]
    new = prompt[cached:] + answer
    cache.make_room(len(new))
    on.step([Slice(sequence, new)])
    cache.keep(sequence, prompt + answer, scope, num_shared=cached)
    return cached


def test_a_second_turn_reads_only_what_is_new() -> None:
    on = engine()
    cache = PrefixCache(on)
    assert run(cache, on, [1, 2, 3], [7, 8]) == 0
    assert run(cache, on, [1, 2, 3, 7, 8, 4, 5]) == 5
    assert on.steps[1][0].token_ids == [4, 5]
    assert len(cache) == 1, "the conversation that went on is kept once"


def test_the_last_token_is_always_read() -> None:
    on = engine()
    cache = PrefixCache(on)
    run(cache, on, [1, 2, 3], [7, 8, 9, 7, 8, 9])
    assert run(cache, on, [1, 2, 3]) == 2, "an answer tried again"
    assert run(cache, on, [1, 2, 3, 4]) == 3
    assert run(cache, on, [1]) == 0


def test_a_history_that_is_rewritten_uses_what_is_equal() -> None:
    on = engine()
    cache = PrefixCache(on)
    question, thought, answer = [*range(1, 11)], [90] * 20, [*range(50, 60)]
    run(cache, on, question, [*thought, *answer])
    assert run(cache, on, [*question, *answer, 61, 62]) == len(question)


def test_two_conversations_with_one_system_message_read_it_once() -> None:
    on = engine()
    cache = PrefixCache(on)
    system = [9] * 10
    one, two = [*system, *range(20, 60)], [*system, *range(60, 95)]
    assert [run(cache, on, one), run(cache, on, two)] == [0, 10]
    assert [run(cache, on, [*one, 1]), run(cache, on, [*two, 1])] == [50, 45]


def test_nobody_uses_what_was_read_for_another() -> None:
    on = engine()
    cache = PrefixCache(on)
    prompt = [*range(1, 21)]
    assert run(cache, on, prompt, scope="a") == 0
    assert run(cache, on, [*prompt, 50], scope="b") == 0
    assert run(cache, on, [*prompt, 51], scope="") == 0
    assert run(cache, on, [*prompt, 52], scope="a") == 20
    assert run(cache, on, [*prompt, 51, 53], scope="c") == 21, "what belongs to nobody is for all"
    assert run(cache, on, [*prompt, 51, 54], scope="d") == 21, "and stays so"


def test_what_is_being_read_can_be_begun_with_too() -> None:
    on = engine()
    cache = PrefixCache(on)
    prompt = [*range(1, 31)]
    sequence, _ = cache.open(prompt, "a")
    on.step([Slice(sequence, prompt[:20], sample=False)])
    running = [Known(sequence, prompt[:20], "a", is_running=True)]
    fork, cached = cache.open(prompt, "a", running)
    assert (fork != sequence, cached) == (True, 20)
    assert cache.open(prompt, "b", running)[1] == 0


def test_the_least_recently_used_one_is_forgotten_first() -> None:
    on = engine(cache_tokens=20)
    cache = PrefixCache(on)
    a, b, c = [1] * 5, [2] * 5, [3] * 10
    for prompt in (a, b, [*a[:4], 8], c):
        run(cache, on, prompt)
    assert run(cache, on, [*a, 9, 8]) == 5
    assert run(cache, on, [*b, 1]) == 0


class CoarseEngine(ScriptedEngine):
    """Goes back to whole tens of tokens only, as a recurrent model goes back to checkpoints."""

    def keepable(self, sequence: int, length: int) -> int:
        held = len(self._tokens[sequence])
        return held if length >= held else length // 10 * 10

    def truncate(self, sequence: int, length: int) -> None:
        super().truncate(sequence, self.keepable(sequence, length))

    def fork(self, sequence: int, length: int) -> int:
        return super().fork(sequence, self.keepable(sequence, length))


def test_an_engine_that_cannot_keep_all_is_given_the_rest_again() -> None:
    on = CoarseEngine(lambda ids: [], end_id=0, vocab_size=100, context_length=1000)
    cache = PrefixCache(on)
    prompt = list(range(1, 36))
    run(cache, on, prompt, [90, 91])
    assert run(cache, on, [*prompt, 90, 91, 50]) == 37, "going on cuts nothing"
    assert run(cache, on, [*prompt, 60, 61, 62]) == 30
    assert on.steps[-1][0].token_ids == [*prompt[30:], 60, 61, 62]
    assert run(cache, on, [*prompt[:9], 70]) == 0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_whatever_is_asked_the_memory_is_enough_and_comes_back(seed: int) -> None:
    rng = random.Random(seed)
    on = engine(cache_tokens=60)
    cache = PrefixCache(on)
    for _ in range(40):
        prompt = [rng.randrange(2) for _ in range(rng.randint(1, 25))]
        answer = [rng.randrange(2) for _ in range(rng.randint(0, 15))]
        run(cache, on, prompt, answer, scope=rng.choice("ab"))
        assert 0 <= cache.num_tokens <= 60 - on.num_free_tokens()
    while cache.forget_oldest():
        pass
    assert (on.num_free_tokens(), cache.num_tokens, cache._trees) == (60, 0, {})
