"""What steps take, learned from measurements that the machine disturbs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kaiwa.runtime.step_times import FIRST_TOKENS, REMEMBERED, STALE_AFTER, StepTimes


def linear(num_tokens: int) -> float:
    return 0.004 + 0.001 * num_tokens


def learned(*sizes: int) -> StepTimes:
    times = StepTimes()
    for size in sizes:
        times.observe(size, linear(size))
    return times


def test_nothing_is_known_at_first() -> None:
    times = StepTimes()
    assert times.predict(1) is None
    assert (times.fitting(0.1, 256), times.fitting(0.1, 10)) == (FIRST_TOKENS, 10)


def test_between_two_sizes_on_the_line_and_beyond_in_proportion() -> None:
    times = learned(8, 16)
    assert times.predict(8) == linear(8)
    assert times.predict(12) == (linear(8) + linear(16)) / 2
    assert times.predict(1) == linear(8), "a smaller step takes no longer"
    assert times.predict(32) == 2 * linear(16)


def test_a_few_steps_are_enough_to_find_the_size_that_fits() -> None:
    times = StepTimes()
    sizes = []
    for _ in range(5):
        sizes.append(times.fitting(0.1, 256))
        times.observe(sizes[-1], linear(sizes[-1]))
    assert sizes[0] == FIRST_TOKENS
    assert 90 <= sizes[-1] <= 96


def test_one_slow_step_changes_nothing() -> None:
    times = learned(1, 1, 1)
    times.observe(1, 5.0)
    assert times.predict(1) == linear(1)


def test_what_was_slow_once_is_tried_again() -> None:
    times = learned(16)
    for _ in range(REMEMBERED):
        times.observe(128, 3.0)
    size = times.fitting(0.1, 256)
    assert size < 64
    for _ in range(STALE_AFTER):
        times.observe(size, linear(size))
    grown = [size := times.fitting(0.1, 256) for _ in range(8) if times.observe(size, linear(size)) is None]
    assert grown[-1] >= 85


@given(st.lists(st.tuples(st.integers(1, 600), st.floats(1e-4, 10)), min_size=1), st.floats(1e-5, 20))
def test_what_fits_is_predicted_to_fit(steps: list[tuple[int, float]], limit_s: float) -> None:
    times = StepTimes()
    for num_tokens, seconds in steps:
        times.observe(num_tokens, seconds)
    fitting = times.fitting(limit_s, 600)
    assert 0 <= fitting <= 600
    predicted = times.predict(fitting)
    assert fitting == 0 or (predicted is not None and predicted <= limit_s)
