"""Products with the rows of prompts, which tiers with tiles of 16-bit numbers round otherwise than those of answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.native import _native
from number_formats import BY_NAME, FORMATS, product_bound, random_weights, unpack_with_gguf

NAMES = [number_format.name for number_format in FORMATS]


def random_matrix(name: str, rows: int, blocks: int, rng: np.random.Generator) -> tuple[_native.Matrix, np.ndarray]:
    """A matrix of so many blocks across, and its weights."""
    number_format = BY_NAME[name]
    cols = blocks * (number_format.block_size if number_format.block_size > 1 else 33)
    data = random_weights(number_format, rows, cols, rng)
    return _native.Matrix(name, data, rows, cols), unpack_with_gguf(number_format, data, rows, cols)


def multiply(
    matrix: _native.Matrix, inputs: np.ndarray, isa: str, *, threads: int = 1, precise: bool = False
) -> np.ndarray:
    """The product as the rows of a prompt."""
    return np.asarray(_native.matmul(matrix, inputs, threads=threads, isa=isa, precise=precise, prompt=True))


@pytest.mark.parametrize("name", NAMES)
@given(tokens=st.integers(1, 300), rows=st.integers(1, 150), blocks=st.integers(1, 5), seed=st.integers(0, 999))
@settings(max_examples=12, deadline=None)
def test_a_row_comes_to_the_same_whatever_is_multiplied_with_it(
    name: str, tokens: int, rows: int, blocks: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    matrix, weights = random_matrix(name, rows, blocks, rng)
    inputs = rng.standard_normal((tokens, matrix.columns), dtype=np.float32)
    exact = inputs.astype(np.float64) @ weights.astype(np.float64).T
    # Both factors rounded to 8 bits, or the inputs in blocks.
    sizes = np.abs(inputs).astype(np.float64) @ np.abs(weights).astype(np.float64).T
    bound = product_bound(BY_NAME[name], weights, inputs) + (0 if name in ("F32", "F16") else 2.02 * 2.0**-9 * sizes)
    for isa in _native.available_isas():
        product = multiply(matrix, inputs, isa, threads=2)
        assert (np.abs(product - exact) <= bound).all()
        cut = int(rng.integers(0, tokens))
        for some in (slice(0, cut), slice(cut, tokens)):
            if len(inputs[some]):
                np.testing.assert_array_equal(multiply(matrix, inputs[some].copy(), isa), product[some])


@pytest.mark.parametrize("name", NAMES)
def test_rounding_errors_cancel_out(name: str, isa: str) -> None:
    """In units of what one column adds: a lost column errs by 1."""
    rng = np.random.default_rng(0)
    data = random_weights(BY_NAME[name], 96, 2048, rng)
    weights = unpack_with_gguf(BY_NAME[name], data, 96, 2048).astype(np.float64)
    inputs = rng.standard_normal((40, 2048), dtype=np.float32)
    error = multiply(_native.Matrix(name, data, 96, 2048), inputs, isa) - inputs.astype(np.float64) @ weights.T
    assert np.sqrt((error**2).mean()) < 0.35 * np.sqrt((inputs**2).mean() * (weights**2).mean())


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("name", ["Q4_1", "Q6_K", "BF16"])
def test_inputs_that_are_no_numbers_spoil_their_row_and_no_other(name: str, precise: bool, isa: str) -> None:
    matrix, _ = random_matrix(name, 33, 2, np.random.default_rng(0))
    inputs = np.ones((20, matrix.columns), dtype=np.float32)
    inputs[1, 40], inputs[18, 50] = np.nan, -np.inf
    product = multiply(matrix, inputs, isa, precise=precise)
    assert np.flatnonzero(~np.isfinite(product).all(axis=1)).tolist() == [1, 18]


@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "BF16"])
def test_what_rounding_loses_is_taken_along_where_it_counts(name: str, isa: str) -> None:
    rng = np.random.default_rng(1)
    matrix, weights = random_matrix(name, 48, 8, rng)
    rounded = (weights.view("<u4") + 0x7FFF + (weights.view("<u4") >> 16 & 1)) & 0xFFFF0000
    known = rounded.view("<f4") if isa == "amx" else weights
    inputs = rng.standard_normal((5, matrix.columns), dtype=np.float32)
    exact = inputs.astype(np.float64) @ known.astype(np.float64).T
    sizes = np.abs(inputs).astype(np.float64) @ np.abs(weights).astype(np.float64).T
    assert (np.abs(multiply(matrix, inputs, isa, precise=True) - exact) <= 2.0**-14 * sizes).all()
