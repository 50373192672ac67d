"""Random weights in every number format, and how far a matrix product may lie from the truth."""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import numpy as np
from gguf.quants import dequantize


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format's block: how many weights in how many bytes, where its scales lie, and which input it sees.

    `half_fields` are scales in float16, `exponent_fields` bytes that are powers of two. `input_block`
    is how many inputs share one scale when they are rounded to 8 bits; 0 where inputs stay float32.
    """

    name: str
    block_size: int
    block_bytes: int
    half_fields: tuple[int, ...] = ()
    exponent_fields: tuple[int, ...] = ()
    input_block: int = 0


FORMATS = (
    NumberFormat("F32", 1, 4),
    NumberFormat("F16", 1, 2, half_fields=(0,)),
    NumberFormat("BF16", 1, 2),
    NumberFormat("Q8_0", 32, 34, half_fields=(0,), input_block=32),
    NumberFormat("Q4_0", 32, 18, half_fields=(0,), input_block=32),
    NumberFormat("Q4_1", 32, 20, half_fields=(0, 2), input_block=32),
    NumberFormat("Q5_0", 32, 22, half_fields=(0,), input_block=32),
    NumberFormat("Q5_1", 32, 24, half_fields=(0, 2), input_block=32),
    NumberFormat("Q2_K", 256, 84, half_fields=(80, 82), input_block=32),
    NumberFormat("Q3_K", 256, 110, half_fields=(108,), input_block=32),
    NumberFormat("IQ4_NL", 32, 18, half_fields=(0,), input_block=32),
    NumberFormat("IQ4_XS", 256, 136, half_fields=(0,), input_block=32),
    NumberFormat("MXFP4", 32, 17, exponent_fields=(0,), input_block=32),
    NumberFormat("Q4_K", 256, 144, half_fields=(0, 2), input_block=256),
    NumberFormat("Q5_K", 256, 176, half_fields=(0, 2), input_block=256),
    NumberFormat("Q6_K", 256, 210, half_fields=(208,), input_block=256),
)
BY_NAME = {number_format.name: number_format for number_format in FORMATS}


def random_weights(number_format: NumberFormat, rows: int, cols: int, rng: np.random.Generator) -> bytes:
    """Rows of blocks as a trained model might have them: all integers random, scales small and positive."""
    if number_format.block_size == 1:
        values = rng.standard_normal((rows, cols), dtype=np.float32)
        return _encode_plainly(number_format.name, values)
    blocks = _random_blocks(number_format, rows * cols // number_format.block_size, rng)
    for offset in number_format.half_fields:
        scales = rng.uniform(0.01, 0.02, len(blocks)).astype("<f2")
        blocks[:, offset : offset + 2] = scales[:, None].view(np.uint8)
    for offset in number_format.exponent_fields:
        blocks[:, offset] = rng.integers(118, 123, len(blocks))
    return blocks.tobytes()


def any_weights(number_format: NumberFormat, num_blocks: int, rng: np.random.Generator) -> bytes:
    """Blocks of random bits, as long as every number in them is finite."""
    blocks = _random_blocks(number_format, num_blocks, rng)
    for offset in number_format.half_fields:
        bits = blocks[:, offset : offset + 2].copy().view("<u2")
        bits[~np.isfinite(bits.view("<f2"))] &= 0xBFFF
        blocks[:, offset : offset + 2] = bits.view(np.uint8)
    for offset in number_format.exponent_fields:
        blocks[:, offset] %= 253  # of larger ones, the largest number is infinite
    if number_format.name in ("F32", "BF16"):
        exponent = blocks[:, -1]
        exponent[(exponent & 0x7F) == 0x7F] &= 0xBF
    return blocks.tobytes()


def unpack_with_gguf(number_format: NumberFormat, data: bytes, rows: int, cols: int) -> np.ndarray:
    """What the `gguf` package reads: float32, shape (rows, cols)."""
    raw = np.frombuffer(data, dtype=np.uint8).reshape(rows, -1)
    if number_format.name in ("F32", "F16"):
        raw = raw.view("<f4" if number_format.name == "F32" else "<f2")
    unpacked = dequantize(raw, gguf.GGMLQuantizationType[number_format.name])
    return unpacked.astype(np.float32).reshape(rows, cols)


def product_bound(number_format: NumberFormat, weights: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """The largest error that a right product may have: float64, shape (tokens, rows).

    Rounding an input to 8 bits moves it by up to half a step, 1/254 of the largest in its block; adding up in float32
    moves the sum by up to one unit in the last place for each term.
    """
    sizes = np.abs(inputs.astype(np.float64))
    magnitude = sizes @ np.abs(weights.astype(np.float64)).T
    bound = magnitude * weights.shape[1] * 2.0**-23
    if number_format.input_block:
        blocks = sizes.reshape(len(inputs), -1, number_format.input_block)
        steps = np.repeat(blocks.max(axis=-1) / 254, number_format.input_block, axis=-1)
        bound += 1.01 * steps @ np.abs(weights.astype(np.float64)).T
    return bound


def _random_blocks(number_format: NumberFormat, num_blocks: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, (num_blocks, number_format.block_bytes), dtype=np.uint8)


def _encode_plainly(name: str, values: np.ndarray) -> bytes:
    if name == "BF16":
        return (values.view("<u4") >> 16).astype("<u2").tobytes()
    return values.astype("<f4" if name == "F32" else "<f2").tobytes()
