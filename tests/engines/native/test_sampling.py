"""The token sampler draws from exactly the distribution that its options describe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.native import _native

OFF = {
    "greedy": False,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "logit_bias": [],
    "seed": 0,
}


def sampler(vocab_size: int, **options: Any) -> Any:
    return _native.Sampler(**{**OFF, **options}, vocab_size=vocab_size)


def as_logits(values: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float32)


def distribution(logits: np.ndarray, **options: Any) -> np.ndarray:
    """The probabilities that the options leave, step by step as their definitions say; ties fall to lower ids."""
    options = {**OFF, **options}
    scores = logits.astype(np.float64) / options["temperature"]
    order = np.lexsort((np.arange(len(scores)), -scores))
    kept = np.ones(len(scores), dtype=bool)
    if 0 < options["top_k"] < len(scores):
        kept &= scores >= scores[order[options["top_k"] - 1]]
    if options["top_p"] < 1:
        shares = softmax(np.where(kept, scores, -np.inf))[order]
        kept[order[np.cumsum(shares) - shares >= options["top_p"]]] = False
    if options["min_p"] > 0:
        shares = softmax(np.where(kept, scores, -np.inf))
        kept &= shares >= options["min_p"] * shares.max()
    return softmax(np.where(kept, scores, -np.inf))


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def draws(logits: np.ndarray, count: int, **options: Any) -> np.ndarray:
    """How often each token was drawn."""
    chosen = sampler(len(logits), **options)
    return np.bincount([chosen.sample(logits) for _ in range(count)], minlength=len(logits))


def assert_drawn_from(expected: np.ndarray, counts: np.ndarray) -> None:
    """Pearson's chi-square, at one false alarm in about 30,000: 4 standard deviations, tokens of under 5 pooled."""
    assert counts[expected == 0].sum() == 0, "a token that the options leave out was drawn"
    means = expected * counts.sum()
    is_rare = means < 5
    observed = np.append(counts[~is_rare], counts[is_rare].sum())
    means = np.append(means[~is_rare], means[is_rare].sum())
    observed, means = observed[means > 0], means[means > 0]
    freedom = max(len(means) - 1, 1)
    statistic = ((observed - means) ** 2 / means).sum()
    cube_root = (statistic / freedom) ** (1 / 3)  # Wilson and Hilferty: nearly normal
    assert (cube_root - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom)) < 4


RANDOM_LOGITS = as_logits(np.random.default_rng(7).normal(0, 2, 300))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.4},
        {"temperature": 3.0},
        {"top_k": 1},
        {"top_k": 12},
        {"top_k": 300},
        {"top_k": 5000},
        {"top_p": 0.9},
        {"top_p": 0.01},
        {"top_p": 0.999},
        {"min_p": 0.1},
        {"min_p": 1.0},
        {"temperature": 0.7, "top_k": 40, "top_p": 0.8, "min_p": 0.05},
        {"temperature": 1.5, "top_p": 0.95, "min_p": 0.2},
        {"temperature": 2.0, "top_k": 20, "min_p": 0.3},
    ],
    ids=str,
)
def test_draws_follow_the_exact_distribution(options: dict[str, Any]) -> None:
    counts = draws(RANDOM_LOGITS, 20_000, seed=11, **options)
    assert_drawn_from(distribution(RANDOM_LOGITS, **options), counts)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=40),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.integers(0, 45),
    st.sampled_from([0.23, 0.57, 0.91, 1.0]),  # no share of equal tokens: rounding decides on a border
    st.sampled_from([0.0, 0.03, 0.5]),
    st.integers(0, 2**63 - 1),
)
def test_any_combination_leaves_out_what_it_says(
    values: list[int], temperature: float, top_k: int, top_p: float, min_p: float, seed: int
) -> None:
    logits = as_logits(values) / np.float32(3)  # whole numbers collide: many ties
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    expected = distribution(logits, **options)
    counts = draws(logits, 300, seed=seed, **options)
    assert counts[expected == 0].sum() == 0
    assert np.all(counts[expected > 0.2] > 0)


def test_a_probability_worked_out_by_hand() -> None:
    logits = as_logits(np.log([0.5, 0.25, 0.125, 0.125]))
    assert set(np.flatnonzero(draws(logits, 500, top_p=0.5))) == {0}
    assert set(np.flatnonzero(draws(logits, 500, top_p=0.6))) == {0, 1}
    assert set(np.flatnonzero(draws(logits, 500, top_p=0.8))) == {0, 1, 2}, "of two equals, the lower id"
    assert set(np.flatnonzero(draws(logits, 500, top_k=3))) == {0, 1, 2, 3}, "equals at the border all stay"
    assert set(np.flatnonzero(draws(logits, 500, min_p=0.3))) == {0, 1}


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1000, 49_152])
def test_greedy_takes_the_first_of_the_best(size: int) -> None:
    logits = as_logits(np.random.default_rng(size).integers(-3, 4, size))
    assert sampler(size, greedy=True).sample(logits) == int(np.argmax(logits))
    assert sampler(size, temperature=0.0).sample(logits) == int(np.argmax(logits))


def test_a_seed_fixes_the_draws_and_another_seed_changes_them() -> None:
    def answer(seed: int) -> list[int]:
        chosen = sampler(300, seed=seed, temperature=1.5)
        return [chosen.sample(RANDOM_LOGITS) for _ in range(64)]

    assert answer(5) == answer(5)
    assert len({tuple(answer(seed)) for seed in [0, 1, 2, 3, 2**63 - 1]}) == 5


def test_first_draws_of_neighbouring_seeds_are_independent() -> None:
    logits = as_logits(np.zeros(16))
    firsts = [sampler(16, seed=seed).sample(logits) for seed in range(8_000)]
    assert_drawn_from(np.full(16, 1 / 16), np.bincount(firsts, minlength=16))


def test_the_repetition_penalty_divides_or_multiplies_once_over_prompt_and_answer() -> None:
    chosen = sampler(4, greedy=True, repetition_penalty=2.0)
    chosen.set_prompt([0, 0, 0])
    logits = as_logits([4.0, 2.5, 2.0, -1.0])
    assert chosen.sample(logits) == 1, "4 became 2, however often the prompt has it"
    assert chosen.sample(logits) == 0, "2.5 became 1.25, and of the two 2.0 the first wins"
    chosen = sampler(2, greedy=True, repetition_penalty=2.0)
    chosen.set_prompt([0])
    assert chosen.sample(as_logits([-1.0, -1.5])) == 1, "a negative score is multiplied"


def test_presence_and_frequency_count_the_answer_only() -> None:
    logits = as_logits([3.0, 2.0])
    chosen = sampler(2, greedy=True, presence_penalty=1.5)
    chosen.set_prompt([0, 0])
    assert [chosen.sample(logits) for _ in range(3)] == [0, 1, 0]
    chosen = sampler(2, greedy=True, frequency_penalty=0.4)
    chosen.set_prompt([0, 0])
    assert [chosen.sample(logits) for _ in range(5)] == [0, 0, 0, 1, 0]
    chosen = sampler(2, greedy=True, presence_penalty=-1.5)
    assert chosen.sample(as_logits([2.0, 2.0])) == 0
    assert chosen.sample(as_logits([2.0, 3.0])) == 0, "a negative penalty draws a token on"


def test_a_bias_comes_before_penalties_and_what_is_not_allowed_is_out() -> None:
    logits = as_logits([1.0, 2.0, 0.0])
    chosen = sampler(3, greedy=True, logit_bias=[(0, 2.5)], repetition_penalty=2.0)
    chosen.set_prompt([0])
    assert chosen.sample(logits) == 1, "3.5 became 1.75"
    chosen = sampler(3, greedy=True, logit_bias=[(2, 50.0)])
    assert chosen.sample(logits) == 2
    assert chosen.sample(logits, b"\x03") == 1
    assert chosen.sample(logits, b"\xf9") == 0, "bits beyond the vocabulary mean nothing"
    with pytest.raises(IndexError, match="token 3 is not in the vocabulary of 3"):
        sampler(3, logit_bias=[(3, 1.0)])


@given(st.integers(1, 70), st.integers(0, 2**32))
def test_masks_of_any_length_leave_what_they_allow(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = as_logits(rng.normal(0, 3, size))
    ids = np.sort(rng.choice(size, rng.integers(1, size + 1), replace=False)).tolist()
    allowed = np.packbits(np.isin(np.arange(size), ids), bitorder="little").tobytes()
    assert sampler(size, greedy=True).sample(logits, allowed) == ids[int(np.argmax(logits[ids]))]
    assert sampler(size, temperature=30.0).sample(logits, allowed) in ids


def test_a_token_at_minus_infinity_is_never_drawn() -> None:
    logits = as_logits([0.0, -np.inf, 0.0, -np.inf])
    assert set(np.flatnonzero(draws(logits, 200, repetition_penalty=1.2))) == {0, 2}
    assert set(np.flatnonzero(draws(logits, 200, top_k=3, top_p=0.999))) == {0, 2}


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("position", [0, 3, 8, 16])
@pytest.mark.parametrize("options", [{"greedy": True}, {}, {"top_p": 0.5}])
def test_scores_that_are_no_numbers_are_refused(wrong: float, position: int, options: dict[str, Any]) -> None:
    logits = as_logits(np.arange(17))
    logits[position] = wrong
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        sampler(17, **options).sample(logits)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no token to choose"):
        sampler(3).sample(as_logits([-np.inf] * 3))
    with pytest.raises(ValueError, match="2 logits for a vocabulary of 3"):
        sampler(3).sample(as_logits([1.0, 2.0]))
    with pytest.raises(IndexError, match="token 3 is not in the vocabulary of 3"):
        sampler(3).set_prompt([0, 3])
    with pytest.raises(ValueError, match="at least one token"):
        sampler(0)


@pytest.mark.parametrize("temperature", [1e-40, 1e-6, 100.0])
def test_extreme_temperatures_are_defined(temperature: float) -> None:
    counts = draws(RANDOM_LOGITS * np.float32(1e3), 500, temperature=temperature, top_p=0.9)
    assert counts.sum() == 500
    if temperature < 1:
        assert counts[np.argmax(RANDOM_LOGITS)] == 500


def test_a_large_vocabulary_with_everything_on() -> None:
    logits = as_logits(np.random.default_rng(3).normal(0, 1, 260_000))
    options = {"top_k": 5_000, "top_p": 0.3, "temperature": 0.5}
    expected = distribution(logits, **options)
    counts = draws(logits, 300, **options)
    assert counts[expected == 0].sum() == 0
