"""Kept sequences: the longest beginning is continued, never all of it, and never more than one context is held."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.prefix_cache import Lease, PrefixCache, common_prefix


def engine(context_length: int = 1000) -> ScriptedEngine:
    return ScriptedEngine(lambda ids: [], end_id=0, vocab_size=100, context_length=context_length)


def run(cache: PrefixCache, on: ScriptedEngine, prompt: list[int], answer: list[int] = []) -> int:  # noqa: B006
    """Read a prompt and an answer; the number of cached tokens."""
    lease = cache.lease(prompt)
    cached = len(lease.token_ids)
    assert lease.token_ids == prompt[:cached] == on._tokens[lease.sequence]
    new = prompt[cached:] + answer
    cache.make_room(cached + len(new))
    lease.token_ids.extend(new)
    on.step([Slice(lease.sequence, new)])
    cache.give_back(lease)
    return cached


def test_a_second_turn_reads_only_what_is_new() -> None:
    on = engine()
    cache = PrefixCache(on)
    assert run(cache, on, [1, 2, 3], [7, 8]) == 0
    assert run(cache, on, [1, 2, 3, 7, 8, 4, 5]) == 5
    assert on.steps[1][0].token_ids == [4, 5]


def test_the_last_token_is_always_read() -> None:
    on = engine()
    cache = PrefixCache(on)
    run(cache, on, [1, 2, 3], [7, 8, 9, 7, 8, 9])
    assert run(cache, on, [1, 2, 3]) == 2, "an answer tried again"
    assert run(cache, on, [1, 2, 3, 4]) == 3
    assert run(cache, on, [1]) == 0


def test_two_conversations_with_one_system_message_keep_a_sequence_each() -> None:
    on = engine()
    cache = PrefixCache(on)
    system = [9] * 10
    one, two = [*system, *range(20, 60)], [*system, *range(60, 95)]
    assert [run(cache, on, one), run(cache, on, two)] == [0, 0]
    assert [run(cache, on, [*one, 1]), run(cache, on, [*two, 1])] == [50, 45]


def test_the_least_recently_used_one_is_forgotten_first() -> None:
    on = engine()
    cache = PrefixCache(on, max_sequences=2)
    a, b, c = [1] * 5, [2] * 5, [3] * 5
    for prompt in (a, b, [*a, 9], c):
        run(cache, on, prompt)
    assert len(on._tokens) == 2
    assert run(cache, on, [*a, 9, 8]) == 6
    assert run(cache, on, b) == 0


def test_an_interrupted_step_is_settled_by_what_the_engine_computed() -> None:
    on = engine()
    cache = PrefixCache(on)
    for is_computed in (False, True):
        prompt = [50 + is_computed, 2, 3, 4]
        lease = cache.lease(prompt)
        lease.token_ids.extend(prompt)
        if is_computed:
            on.step([Slice(lease.sequence, prompt)])
        cache.give_back(lease)
        assert run(cache, on, [*prompt, 5]) == 4 * is_computed


class CoarseEngine(ScriptedEngine):
    """Goes back to whole tens of tokens only, as a recurrent model goes back to checkpoints."""

    def keepable(self, sequence: int, length: int) -> int:
        held = len(self._tokens[sequence])
        return held if length >= held else length // 10 * 10

    def truncate(self, sequence: int, length: int) -> None:
        super().truncate(sequence, self.keepable(sequence, length))


def test_an_engine_that_cannot_keep_all_is_given_the_rest_again() -> None:
    on = CoarseEngine(lambda ids: [], end_id=0, vocab_size=100, context_length=1000)
    cache = PrefixCache(on)
    prompt = list(range(1, 36))
    run(cache, on, prompt, [90, 91])
    assert run(cache, on, [*prompt, 90, 91, 50]) == 37, "going on cuts nothing"
    assert run(cache, on, [*prompt, 60, 61, 62]) == 30
    assert on.steps[-1][0].token_ids == [*prompt[30:], 60, 61, 62]
    assert run(cache, on, [*prompt[:9], 70]) == 0
    assert len(on._tokens) == 2, "what could not be used is kept for its own conversation"


def test_a_discarded_sequence_is_closed() -> None:
    on = engine()
    cache = PrefixCache(on)
    cache.discard(cache.lease([1, 2]))
    assert on._tokens == {}


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=20), st.lists(st.integers(0, 2), max_size=20))
def test_common_prefix_is_the_longest(a: list[int], b: list[int]) -> None:
    length = common_prefix(a, b)
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_whatever_is_asked_no_more_than_one_context_is_held(seed: int) -> None:
    rng = random.Random(seed)
    on = engine(context_length=40)
    cache = PrefixCache(on, max_sequences=3)
    for _ in range(30):
        prompt = [rng.randrange(2) for _ in range(rng.randint(1, 25))]
        run(cache, on, prompt, [rng.randrange(2) for _ in range(rng.randint(0, 15))])
        assert sum(map(len, on._tokens.values())) <= 40
        assert len(on._tokens) <= 3


def test_leases_are_told_apart_though_they_hold_the_same() -> None:
    assert Lease(0, [1]) != Lease(0, [1])
