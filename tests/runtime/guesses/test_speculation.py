"""Guesses: where they pay, and that no answer ever changes by them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice import LETTERS, Dice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.guesses.speculation import PROBE_AFTER, Odds, Speculator, best_number
from small_model import echoes, model, says

CHI_SQUARE_8 = 26.1
"""What chi-square with 8 degrees of freedom exceeds once in a thousand times; the seeds here are always the same."""


def linear(number: int) -> float:
    return 1.0 + 0.35 * number


def num_guessed(engine: ScriptedEngine) -> int:
    return sum(part.num_guesses for step in engine.steps for part in step)


def test_the_best_number_weighs_what_guesses_bring_against_what_they_cost() -> None:
    assert best_number(0.3, 24, num_others=0, step_s=linear) == 0
    assert best_number(0.7, 24, num_others=0, step_s=linear) in (1, 2)
    assert best_number(0.97, 24, num_others=0, step_s=linear) > 8
    assert best_number(0.7, 24, num_others=7, step_s=lambda number: 3.4 + 0.35 * number) == 0
    assert best_number(0.95, 24, num_others=7, step_s=lambda number: 3.4 + 0.35 * number) > 2
    assert best_number(0.99, 24, num_others=0, step_s=lambda number: 1.0 + number) == 0
    assert best_number(0.5, 24, num_others=0, step_s=lambda number: 1.0) == 24, "what costs nothing is tried"


def test_odds_follow_what_happens() -> None:
    odds = Odds(1.0, 1.0)
    for _ in range(20):
        odds.learn(4, 4)
    assert odds.chance > 0.95
    for _ in range(20):
        odds.learn(4, 0)
    assert odds.chance < 0.2


def test_it_stops_guessing_where_that_does_not_pay_and_tries_again_now_and_then() -> None:
    speculator = Speculator([1, 2, 3, 4] * 5)
    numbers = []
    for _ in range(200):
        guesses = speculator.guess(8, num_others=0, step_s=linear)
        numbers.append(len(guesses))
        if guesses:
            speculator.learn(len(guesses), 0)
    assert numbers[0] > 2
    assert sum(numbers[100:]) <= 100 // PROBE_AFTER + 1
    assert sum(numbers[100:]) >= 1
    speculator.learn(1, 1)
    for _ in range(PROBE_AFTER * 8):
        if guesses := speculator.guess(8, num_others=0, step_s=linear):
            speculator.learn(len(guesses), len(guesses))
    assert len(guesses) == 8, "it pays again"


def test_a_text_that_quotes_its_prompt_takes_fewer_steps() -> None:
    prompt = " ".join(f"item {number} costs {number * 7 % 90} coins." for number in range(40))
    fast, slow = echoes(), echoes()
    assert model(fast, speculation=True).chat(prompt).text == model(slow).chat(prompt).text == prompt
    assert num_guessed(slow) == 0
    assert len(fast.steps) < len(slow.steps) / 3


def test_an_answer_ends_where_it_would_end_without_guesses() -> None:
    engine = says("abcabcabcabcabcabcabcabcabcabc")
    llm = model(engine, speculation=True)
    for limit in range(1, 31):
        reply = llm.chat("abcabcabc", max_new_tokens=limit)
        assert (len(reply.text), reply.finish_reason, reply.usage.generated_tokens) == (limit, "length", limit)
    assert num_guessed(engine) > 0
    reply = llm.chat("abcabcabc", stop="bca", max_new_tokens=30)
    assert (reply.text, reply.usage.generated_tokens) == ("a", 4)
    second = llm.chat("abcabcabc")
    assert second.usage.cached_tokens == second.usage.prompt_tokens - 1, "what was guessed too much is not kept"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([0.0, 0.5, 1.0, 1.5]), st.floats(0.8, 1.3))
def test_greedy_and_seeded_answers_are_the_same_with_and_without(
    seed: int, sides: int, temperature: float, penalty: float
) -> None:
    options = {"seed": seed, "temperature": temperature, "repetition_penalty": penalty, "max_new_tokens": 60}
    with model(Dice(sides=sides), speculation=True) as fast, model(Dice(sides=sides)) as plain:
        assert fast.chat("abab", **options).text == plain.chat("abab", **options).text
        assert (
            fast.chat("abab", presence_penalty=0.4, **options).text
            == plain.chat("abab", presence_penalty=0.4, **options).text
        )


def test_what_is_drawn_with_guesses_has_the_chances_that_it_has_without() -> None:
    engine = Dice(sides=3)
    llm = model(engine, speculation=True)
    prompt = [*b"abcabcbcabcaabcbbcaabc"] * 3
    count: Counter[tuple[int, int]] = Counter()
    num_draws = 1500
    for seed in range(num_draws):
        [*events] = llm.stream_text(prompt, max_new_tokens=3, seed=seed, temperature=1.0)
        first, second, _ = "".join(event.text for event in events).encode()
        count[first, second] += 1
    assert num_guessed(engine) > num_draws / 2
    expected = {}
    for first, chance in zip(LETTERS, engine.chances(prompt), strict=False):
        for second, next_chance in zip(LETTERS, engine.chances([*prompt, first]), strict=False):
            expected[first, second] = num_draws * chance * next_chance
    statistic = sum((count[pair] - wanted) ** 2 / wanted for pair, wanted in expected.items())
    assert statistic < CHI_SQUARE_8


def test_a_recurrent_engine_gets_no_guesses() -> None:
    from dataclasses import replace

    engine = echoes()
    engine.info = replace(engine.info, is_recurrent=True)
    assert model(engine, speculation=True).chat("abababababab").text == "abababababab"
    assert num_guessed(engine) == 0


@pytest.mark.parametrize("num_logprobs", [None, 2])
def test_every_token_has_its_logprobs(num_logprobs: int | None) -> None:
    engine = says("abcabcabcabcabcabc")
    deltas = [
        event for event in model(engine, speculation=True).stream("abcabcabc", num_logprobs=num_logprobs) if event.text
    ]
    assert num_guessed(engine) > 0
    tokens = b"".join(each.token for delta in deltas for each in getattr(delta, "logprobs", ()))
    assert tokens == (b"" if num_logprobs is None else b"abc" * 6)
