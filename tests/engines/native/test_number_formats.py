"""Number formats: unpacked as the `gguf` package does, and multiplied within their bounds on every kernel tier."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.native import _native
from number_formats import (
    BY_NAME,
    FORMATS,
    NumberFormat,
    any_weights,
    product_bound,
    random_weights,
    unpack_with_gguf,
)

NAMES = [number_format.name for number_format in FORMATS]


def half(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}e", *values)


# Sub-block scales 1, 2, 3, 4, 5, 6, 7, 40 and minimums 0, 1, 2, 3, 4, 5, 6, 50: of the last two, the upper two bits
# lie in the bytes of sub-block 3 (40 = 8 + 2·16, 50 = 2 + 3·16).
K_SCALES = bytes([1, 2, 3, 4 | 2 << 6, 0, 1, 2, 3 | 3 << 6, 5 | 4 << 4, 6 | 5 << 4, 7 | 6 << 4, 8 | 2 << 4])
K_STEPS = (1, 2, 3, 4, 5, 6, 7, 40)
K_MINIMUMS = (0, 1, 2, 3, 4, 5, 6, 50)
RISING = bytes(low | (15 - low) << 4 for low in range(16))

BLOCKS_ON_PAPER: dict[str, tuple[bytes, list[float]]] = {
    "F32": (struct.pack("<f", -2.75), [-2.75]),
    "F16": (half(0.333251953125), [0.333251953125]),
    "BF16": (b"\xc0\x3f", [1.5]),
    "Q8_0": (half(0.5) + bytes((index - 16) % 256 for index in range(32)), [0.5 * (i - 16) for i in range(32)]),
    "Q4_0": (half(2) + RISING, [2 * (i - 8) for i in range(16)] + [2 * (7 - i) for i in range(16)]),
    "Q4_1": (half(0.5, -1) + RISING, [0.5 * i - 1 for i in range(16)] + [0.5 * (15 - i) - 1 for i in range(16)]),
    # The fifth bits of the first sixteen weights are set.
    "Q5_0": (half(1) + b"\xff\xff\0\0" + RISING, [float(i) for i in range(16)] + [-1.0 - i for i in range(16)]),
    "Q5_1": (
        half(0.25, 3) + b"\0\0\xff\xff" + RISING,
        [0.25 * i + 3 for i in range(16)] + [0.25 * (31 - i) + 3 for i in range(16)],
    ),
    # Every byte 0x21: 1 in even sub-blocks, 2 in odd ones.
    "Q4_K": (
        half(0.5, 2) + K_SCALES + b"\x21" * 128,
        [0.5 * K_STEPS[sub] * (1 + sub % 2) - 2 * K_MINIMUMS[sub] for sub in range(8) for _ in range(32)],
    ),
    # The same, and the fifth bits of sub-blocks 0 and 2 are set.
    "Q5_K": (
        half(0.5, 2) + K_SCALES + b"\x05" * 32 + b"\x21" * 128,
        [
            0.5 * K_STEPS[sub] * (1 + sub % 2 + 16 * (sub in (0, 2))) - 2 * K_MINIMUMS[sub]
            for sub in range(8)
            for _ in range(32)
        ],
    ),
    # Upper bits 0, 1, 2, 3 in the four quarters of each half: 1 - 32, 17 - 32, 34 - 32, 50 - 32.
    "Q6_K": (
        b"\x21" * 128 + b"\xe4" * 64 + bytes(range(1, 9)) + bytes(256 - step for step in range(1, 9)) + half(0.5),
        [
            0.5 * sign * (1 + group) * (-31, -15, 2, 18)[group // 2]
            for sign in (1, -1)
            for group in range(8)
            for _ in range(16)
        ],
    ),
}
IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)
BLOCKS_ON_PAPER |= {
    # Scales 0, 1, … 15 and minimums 15, 14, … 0; every byte 0xE4: 0, 1, 2, 3 in the four blocks of each half.
    "Q2_K": (
        bytes(step | (15 - step) << 4 for step in range(16)) + b"\xe4" * 64 + half(0.5, 2),
        [0.5 * group * (group // 2 % 4) - 2 * (15 - group) for group in range(16) for _ in range(16)],
    ),
    # The same pairs, with the third bit set in blocks 0 and 7; elsewhere it is what takes 4 away. Scales 8 … 15 and
    # 8 … 15 with 2 above them: 40 … 47; less 32.
    "Q3_K": (
        b"\x81" * 32 + b"\xe4" * 64 + bytes(step | step << 4 for step in range(8, 16)) + b"\xa0" * 4 + half(0.5),
        [
            0.5 * (8 + group % 8 + 32 * (group // 8) - 32) * (block % 4 - 4 * (block not in (0, 7)))
            for group, block in [(group, group // 2) for group in range(16)]
            for _ in range(16)
        ],
    ),
    "IQ4_NL": (half(0.5) + RISING, [0.5 * number for number in IQ4 + IQ4[::-1]]),
    # Scales 1, 2, … 8, of which the odd blocks' have 16 added, less 32.
    "IQ4_XS": (
        half(2) + b"\x44\x44" + b"\x21\x43\x65\x87" + RISING * 8,
        [2.0 * (block + 1 + 16 * (block % 2) - 32) * number for block in range(8) for number in IQ4 + IQ4[::-1]],
    ),
    # 2 to the power of 129 - 127
    "MXFP4": (b"\x81" + RISING, [4 * number for number in E2M1 + E2M1[::-1]]),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_block_worked_out_on_paper(name: str) -> None:
    block, expected = BLOCKS_ON_PAPER[name]
    unpacked = np.asarray(_native.unpack(name, block, 1, len(expected)))
    assert unpacked.tolist() == [expected]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 5), blocks=st.integers(1, 7), seed=st.integers(0, 2**32 - 1))
def test_unpacks_bit_for_bit_as_gguf_does(name: str, rows: int, blocks: int, seed: int) -> None:
    number_format = BY_NAME[name]
    cols = blocks * number_format.block_size
    data = any_weights(number_format, rows * blocks, np.random.default_rng(seed))
    unpacked = np.asarray(_native.unpack(name, data, rows, cols))
    assert unpacked.dtype == np.float32
    expected = unpack_with_gguf(number_format, data, rows, cols)
    np.testing.assert_array_equal(unpacked.view(np.uint32), expected.view(np.uint32))


def test_q8_1_is_q8_0_with_a_sum_beside_it() -> None:
    numbers = bytes(range(112, 144))
    block = half(0.5, -99) + numbers
    (unpacked,) = _native.unpack("Q8_1", block, 1, 32).tolist()
    assert unpacked == [0.5 * (number - 256 * (number > 127)) for number in numbers]
    assert _native.Matrix("Q8_1", block, 1, 32).format == "Q8_0"


def test_exponents_at_the_ends_of_their_range() -> None:
    data = b"".join(bytes([exponent]) + b"\x12" * 16 for exponent in (0, 1, 2, 254))
    unpacked = np.asarray(_native.unpack("MXFP4", data, 4, 32))
    assert unpacked[:, 0].tolist() == [2.0**-127, 2.0**-126, 2.0**-125, 2.0**127]
    assert unpacked[:, 16].tolist() == [2.0**-128, 2.0**-127, 2.0**-126, 2.0**126]


NOT_NUMBERS = {
    "F32": struct.pack("<f", math.nan), "F16": half(math.inf), "BF16": b"\x80\xff", "Q8_0": half(math.nan),
    "Q4_1": half(1, math.inf), "Q6_K": bytes(208) + half(math.nan), "Q2_K": bytes(80) + half(1, math.nan),
    "Q3_K": bytes(108) + half(math.inf), "MXFP4": b"\xff",
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_NUMBERS)
def test_what_is_not_a_number_is_refused(name: str) -> None:
    number_format = BY_NAME[name]
    broken = NOT_NUMBERS[name].ljust(number_format.block_bytes, b"\0")
    rows, cols = 40, number_format.block_size
    data = bytearray(random_weights(number_format, rows, cols, np.random.default_rng(0)))
    for row in (37, 21):
        data[row * len(broken) : (row + 1) * len(broken)] = broken
    with pytest.raises(ValueError, match="row 21 holds a number that is infinite or not a number"):
        _native.Matrix(name, data, rows, cols, _native.ThreadPool(2))


@pytest.mark.parametrize("number_format", [one for one in FORMATS if one.block_size > 1], ids=lambda one: one.name)
def test_a_packed_matrix_is_about_as_large_as_the_file(number_format: NumberFormat) -> None:
    data = random_weights(number_format, 64, 4096, np.random.default_rng(0))
    assert _native.Matrix(number_format.name, data, 64, 4096).nbytes <= 1.04 * len(data)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [1, 7, 33, 192])
def test_packing_loses_nothing(name: str, rows: int) -> None:
    number_format = BY_NAME[name]
    cols = 3 * max(number_format.block_size, 32)
    data = random_weights(number_format, rows, cols, np.random.default_rng(rows))
    matrix = _native.Matrix(name, data, rows, cols)
    assert (matrix.rows, matrix.columns) == (rows, cols)
    expected = unpack_with_gguf(number_format, data, rows, cols)
    np.testing.assert_allclose(np.asarray(matrix.unpack()), expected, rtol=0, atol=2.0**-20 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens", [1, 2, 5, 17, 70])
@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (7, 3), (33, 17), (130, 2)])
def test_product_stays_within_its_bound(name: str, tokens: int, rows: int, blocks: int, isa: str) -> None:
    number_format = BY_NAME[name]
    cols = blocks * (number_format.block_size if number_format.block_size > 1 else 33)
    rng = np.random.default_rng([tokens, rows, blocks])
    data = random_weights(number_format, rows, cols, rng)
    weights = unpack_with_gguf(number_format, data, rows, cols)
    inputs = rng.standard_normal((tokens, cols), dtype=np.float32)

    ours = np.asarray(_native.matmul(_native.Matrix(name, data, rows, cols), inputs, isa=isa))

    exact = inputs.astype(np.float64) @ weights.astype(np.float64).T
    assert ours.shape == (tokens, rows)
    assert (np.abs(ours - exact) <= product_bound(number_format, weights, inputs)).all()


@pytest.mark.parametrize("name", NAMES)
def test_rounding_errors_of_a_product_cancel_out(name: str, isa: str) -> None:
    """In units of what one column adds: a lost column errs by 1, rounding by about 0.2; the bound would hide both."""
    rng = np.random.default_rng(0)
    rows, cols = 96, 1024
    data = random_weights(BY_NAME[name], rows, cols, rng)
    weights = unpack_with_gguf(BY_NAME[name], data, rows, cols)
    inputs = rng.standard_normal((32, cols), dtype=np.float32)
    ours = np.asarray(_native.matmul(_native.Matrix(name, data, rows, cols), inputs, isa=isa))
    error = ours - inputs.astype(np.float64) @ weights.astype(np.float64).T
    column = np.sqrt((inputs**2).mean() * (weights.astype(np.float64) ** 2).mean())
    assert np.sqrt((error**2).mean()) < 0.35 * column


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens", [1, 40])
def test_threads_do_not_change_a_product(name: str, tokens: int, isa: str) -> None:
    rng = np.random.default_rng(tokens)
    rows, cols = 161, 512
    matrix = _native.Matrix(name, random_weights(BY_NAME[name], rows, cols, rng), rows, cols)
    inputs = rng.standard_normal((tokens, cols), dtype=np.float32)
    alone = np.asarray(_native.matmul(matrix, inputs, threads=1, isa=isa))
    together = np.asarray(_native.matmul(matrix, inputs, threads=2, isa=isa))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_of_zeros_give_zeros(name: str, isa: str) -> None:
    rows, cols = 33, 512
    matrix = _native.Matrix(name, random_weights(BY_NAME[name], rows, cols, np.random.default_rng(0)), rows, cols)
    product = np.asarray(_native.matmul(matrix, np.zeros((3, cols), dtype=np.float32), isa=isa))
    np.testing.assert_array_equal(product, np.zeros((3, rows)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("precise", [False, True])
def test_inputs_that_are_no_numbers_spoil_their_row_and_no_other(name: str, precise: bool, isa: str) -> None:
    rows, cols = 33, 512
    matrix = _native.Matrix(name, random_weights(BY_NAME[name], rows, cols, np.random.default_rng(0)), rows, cols)
    inputs = np.ones((4, cols), dtype=np.float32)
    inputs[1, 40], inputs[2, 500] = np.nan, -np.inf
    product = np.asarray(_native.matmul(matrix, inputs, isa=isa, precise=precise))
    assert np.isfinite(product).all(axis=1).tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", NAMES)
def test_extreme_inputs(name: str, isa: str) -> None:
    """Numbers near the largest and the smallest that float32 has."""
    rows, cols = 16, 512
    data = random_weights(BY_NAME[name], rows, cols, np.random.default_rng(0))
    matrix = _native.Matrix(name, data, rows, cols)
    inputs = np.zeros((3, cols), dtype=np.float32)
    inputs[0, 3] = 1e-40
    inputs[1, :] = 1e34
    inputs[2, 7] = -1e34
    weights = unpack_with_gguf(BY_NAME[name], data, rows, cols).astype(np.float64)
    product = np.asarray(_native.matmul(matrix, inputs, isa=isa))
    bound = 1e-36 + 0.01 * np.abs(inputs).max(axis=1, keepdims=True) * np.abs(weights).sum(axis=1)
    assert (np.abs(product - inputs.astype(np.float64) @ weights.T) <= bound).all()
