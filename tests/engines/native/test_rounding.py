"""Rounding to blocks: bit for bit what the same steps in numpy give, and close to the weights."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.native import _native
from number_formats import BY_NAME, unpack_with_gguf

ONE = np.float32(1)
POOL = _native.ThreadPool(1)


def quantize(format: str, values: np.ndarray, to: str, pool: _native.ThreadPool = POOL) -> bytes:
    return _native.quantize(format, values.tobytes(), to, pool)


def nearest(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.rint(np.clip(values, np.float32(low), np.float32(high)))


def reciprocal(steps: np.ndarray) -> np.ndarray:
    return np.divide(ONE, steps, out=np.zeros_like(steps), where=steps > 0)


def through_half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float32)


def total(columns: np.ndarray) -> np.ndarray:
    """Sums over the 32 numbers of each block, added one after the other in float32."""
    result = np.zeros(len(columns), dtype=np.float32)
    for column in columns.T:
        result = result + column
    return result


def restated_q8_0(x: np.ndarray) -> bytes:
    """x: float32, shape (blocks, 32)."""
    largest = np.abs(x).max(axis=1)
    best, least = np.zeros(len(x), np.float32), np.full(len(x), np.inf, np.float32)
    for trial in range(32):
        d = through_half(largest / (np.float32(127.4) - np.float32(0.25) * np.float32(trial)))
        off = x - d[:, None] * nearest(x * reciprocal(d)[:, None], -127, 127)
        error = total(off * off)
        is_better = error < least
        best, least = np.where(is_better, d, best), np.where(is_better, error, least)
    q = nearest(x * reciprocal(best)[:, None], -127, 127).astype(np.int8)
    return b"".join(struct.pack("<e", d) + row.tobytes() for d, row in zip(best, q, strict=True))


def restated_with_min(x: np.ndarray, bits: int) -> bytes:
    """x: float32, shape (blocks, 32)."""
    top = np.float32(2**bits - 1)
    best_d, best_m = np.zeros((2, len(x)), np.float32)
    least = np.full(len(x), np.inf, np.float32)
    for trial in range(8):
        d = (x.max(axis=1) - x.min(axis=1)) / (top - ONE + np.float32(0.4) * np.float32(trial))
        m = x.min(axis=1)
        for _ in range(2):
            q = nearest((x - m[:, None]) * reciprocal(d)[:, None], 0, top)
            sum_q, sum_x = total(q), total(x)
            spread = np.float32(32) * total(q * q) - sum_q * sum_q
            product = np.float32(32) * total(q * x) - sum_q * sum_x
            d = np.maximum(np.divide(product, spread, out=np.zeros_like(spread), where=spread > 0), np.float32(0))
            m = (sum_x - d * sum_q) / np.float32(32)
        off = x - (d[:, None] * nearest((x - m[:, None]) * reciprocal(d)[:, None], 0, top) + m[:, None])
        error = total(off * off)
        is_better = error < least
        best_d, best_m = np.where(is_better, d, best_d), np.where(is_better, m, best_m)
        least = np.where(is_better, error, least)
    d, m = through_half(best_d), through_half(best_m)
    q = nearest((x - m[:, None]) * reciprocal(d)[:, None], 0, top).astype(np.uint8)
    return b"".join(pack_with_min(*block, bits) for block in zip(d, m, q, strict=True))


def pack_with_min(d: float, m: float, q: np.ndarray, bits: int) -> bytes:
    fifth = struct.pack("<I", sum(int(number >> 4) << index for index, number in enumerate(q))) if bits == 5 else b""
    return struct.pack("<ee", d, m) + fifth + (q[:16] & 15 | (q[16:] & 15) << 4).astype(np.uint8).tobytes()


RESTATED = {
    "Q8_0": restated_q8_0,
    "Q5_1": lambda x: restated_with_min(x, 5),
    "Q4_1": lambda x: restated_with_min(x, 4),
}
TYPICAL_ERROR = {"Q8_0": 0.006, "Q5_1": 0.04, "Q4_1": 0.08}
"""Of normal numbers, in their standard deviations: about a step's 12th root, the step being 4.2 over the levels."""


@pytest.mark.parametrize("to", RESTATED)
@settings(max_examples=30, deadline=None)
@given(num_blocks=st.integers(1, 40), scale=st.sampled_from([1e-9, 1e-4, 0.02, 1.0, 300.0]), seed=st.integers(0, 2**32))
def test_bit_for_bit_what_numpy_says(to: str, num_blocks: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_t(4, (num_blocks, 32)) * scale).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = 0
    assert quantize("F32", x, to) == RESTATED[to](x)


@pytest.mark.parametrize("to", RESTATED)
def test_normal_numbers_keep_close(to: str) -> None:
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    number_format = BY_NAME[to]
    back = unpack_with_gguf(number_format, quantize("F32", x, to), 64, 256)
    assert np.sqrt(((back - x) ** 2).mean()) < TYPICAL_ERROR[to]


def test_a_ramp_of_four_bits_by_hand() -> None:
    """Sixteen numbers that four bits hold exactly: step 0.5 from -2, twice, the second time downwards."""
    ramp = [0.5 * index - 2 for index in range(16)]
    x = np.array([*ramp, *reversed(ramp)], dtype=np.float32)
    block = struct.pack("<ee", 0.5, -2.0) + bytes(low | (15 - low) << 4 for low in range(16))
    assert quantize("F32", x, "Q4_1") == block


@pytest.mark.parametrize("to", RESTATED)
@pytest.mark.parametrize("value", [0.0, 0.25, -3.0])
def test_blocks_of_one_number_stay_as_they_are(to: str, value: float) -> None:
    x = np.full((3, 32), value, dtype=np.float32)
    back = unpack_with_gguf(BY_NAME[to], quantize("F32", x, to), 3, 32)
    np.testing.assert_allclose(back, x, rtol=2e-3, atol=0)


@pytest.mark.parametrize("to", RESTATED)
def test_half_precision_comes_in_as_the_same_numbers(to: str) -> None:
    x = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float16)
    assert quantize("F16", x, to) == quantize("F32", x.astype(np.float32), to)
    bits = x.astype(np.float32).view(np.uint32) >> 16 << 16
    assert quantize("BF16", (bits >> 16).astype(np.uint16), to) == quantize("F32", bits.view(np.float32), to)


@pytest.mark.parametrize("to", RESTATED)
def test_threads_do_not_change_it(to: str) -> None:
    x = np.random.default_rng(2).standard_normal((300, 1024)).astype(np.float32)
    assert quantize("F32", x, to) == quantize("F32", x, to, _native.ThreadPool(2))


@pytest.mark.parametrize("to", RESTATED)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_numbers_that_no_block_can_hold_are_refused(to: str, bad: float) -> None:
    x = np.zeros((50, 32), dtype=np.float32)
    x[41, 17] = bad
    with pytest.raises(OverflowError, match="not finite, or too large"):
        quantize("F32", x, to)


@pytest.mark.parametrize(("format", "to"), [("Q8_0", "Q4_1"), ("F32", "Q4_0"), ("F32", "F16")])
def test_other_formats_are_refused(format: str, to: str) -> None:
    with pytest.raises(ValueError, match="are not rounded to"):
        _native.quantize(format, bytes(34 * 4), to, POOL)


@settings(max_examples=50, deadline=None)
@given(num_bytes=st.integers(1, 3000), seed=st.integers(0, 2**32))
def test_a_checksum_sees_every_bit(num_bytes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, num_bytes, dtype=np.uint8)
    before = _native.checksum(data.tobytes(), POOL)
    data[rng.integers(num_bytes)] ^= 1 << rng.integers(8)
    assert _native.checksum(data.tobytes(), POOL) != before
    assert _native.checksum(data.tobytes()[:-1], POOL) != _native.checksum(data.tobytes(), POOL)


def test_a_checksum_does_not_depend_on_threads() -> None:
    data = np.random.default_rng(3).integers(0, 256, 1_000_001, dtype=np.uint8).tobytes()
    assert _native.checksum(data, POOL) == _native.checksum(data, _native.ThreadPool(2))


def test_divergence_of_two_distributions_by_hand() -> None:
    expected = np.log(np.array([[1, 3], [2, 2]], dtype=np.float32))
    actual = np.log(np.array([[1, 1], [3, 1]], dtype=np.float32))
    first, second = _native.divergence(expected, actual, [1, 0], POOL)
    assert first == pytest.approx((0.25 * np.log(0.5) + 0.75 * np.log(1.5), -np.log(0.75), np.log(2), False), abs=1e-6)
    assert second == pytest.approx((0.5 * np.log(2 / 3) + 0.5 * np.log(2), np.log(2), -np.log(0.75), True), abs=1e-6)
    with pytest.raises(ValueError, match="no token of the vocabulary"):
        _native.divergence(expected, actual, [1, 2], POOL)
