"""Weights as quantizing tools publish them, packed from first principles, and the numbers that they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_folder import entry, safetensors_bytes

# What the sixteen nibbles stand for: Dettmers et al. 2023, appendix E; bitsandbytes' FP4 has 1, 2 and 1 bits.
NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    dtype=np.float32,
)  # fmt: skip
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3], dtype=np.float32) / np.float32(12)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)

DTYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int8": "I8", "uint8": "U8"}


@dataclass(frozen=True, slots=True)
class Published:
    """Tensors of one weight by what follows its module's name, and the matrix (rows, columns) that they mean.

    `dtypes` where numpy has no such type of its own. Inputs of products are rounded to 8 bits unless `is_float`.
    """

    settings: Mapping[str, Any]
    tensors: dict[str, np.ndarray]
    means: np.ndarray
    is_float: bool = False
    dtypes: Mapping[str, str] | None = None


def e4m3(codes: np.ndarray) -> np.ndarray:
    """The numbers of 8 bits: a sign, 4 bits of exponent around 7, 3 of fraction. Float32."""
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, fraction = (codes >> 3 & 15).astype(int), (codes & 7) / 8
    size = np.where(exponent == 0, fraction * 2.0**-6, (1 + fraction) * 2.0 ** (exponent - 7))
    return (sign * size).astype(np.float32)


def words(nibbles: np.ndarray) -> np.ndarray:
    """Eight neighbours of the last axis in an int32, the first lowest."""
    eights = nibbles.reshape(*nibbles.shape[:-1], -1, 8).astype(np.uint32)
    return (eights << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32).view(np.int32)


def bytes_of(nibbles: np.ndarray, *, high_first: bool) -> np.ndarray:
    first, second = nibbles[..., ::2], nibbles[..., 1::2]
    return (first << 4 | second if high_first else second << 4 | first).astype(np.uint8)


def int8(rng: np.random.Generator, rows: int, cols: int) -> Published:
    weight = rng.integers(-127, 128, (rows, cols), dtype=np.int8)
    largest = rng.uniform(0.1, 0.2, rows).astype(np.float32)
    means = weight.astype(np.float32) * (largest / np.float32(127))[:, None]
    tensors = {"weight": weight, "SCB": largest, "weight_format": np.array(0, dtype=np.uint8)}
    return Published({"quant_method": "bitsandbytes", "load_in_8bit": True}, tensors, means)


def four_bits(
    rng: np.random.Generator, rows: int, cols: int, *, kind: str = "nf4", nested: bool = False, block: int = 64
) -> Published:
    table = {"nf4": NF4, "fp4": FP4}[kind]
    nibbles = rng.integers(0, 16, rows * cols)
    num_blocks = -(-rows * cols // block)
    state: dict[str, Any] = {"quant_type": kind, "blocksize": block, "shape": [rows, cols], "dtype": "bfloat16"}
    tensors = {"weight": bytes_of(nibbles, high_first=True)[:, None], "weight.quant_map": table.copy()}
    if nested:
        indices = rng.integers(0, 256, num_blocks, dtype=np.uint8)
        outer, offset = np.linspace(-1, 1, 256, dtype=np.float32), np.float32(0.125)
        largest = rng.uniform(0.02, 0.05, -(-num_blocks // 256)).astype(np.float32)
        scales = outer[indices] * np.repeat(largest, 256)[:num_blocks] + offset
        tensors |= {"weight.absmax": indices, "weight.nested_absmax": largest, "weight.nested_quant_map": outer}
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": float(offset)}
    else:
        scales = tensors["weight.absmax"] = rng.uniform(0.1, 0.2, num_blocks).astype(np.float32)
    encoded = np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)
    tensors[f"weight.quant_state.bitsandbytes__{kind}"] = encoded
    means = (table[nibbles] * np.repeat(scales, block)[: rows * cols]).reshape(rows, cols)
    settings = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
    return Published(settings, tensors, means, is_float=True)


def gptq(
    rng: np.random.Generator, rows: int, cols: int, *, group: int = 128, version: str = "gptq", with_order: bool = True
) -> Published:
    width = cols if group == -1 else group
    nibbles, zeros, scales, means = _groups(rng, rows, cols, width)
    tensors = {
        "qweight": words(nibbles.reshape(rows, -1, 8)).squeeze(-1).T,
        "qzeros": words(zeros - 1 if version == "gptq" else zeros),
        "scales": scales,
    }
    if with_order:
        tensors["g_idx"] = (np.arange(cols) // width).astype(np.int32)
    settings = {"quant_method": "gptq", "bits": 4, "group_size": group, "checkpoint_format": version}
    return Published(settings, tensors, means)


def awq(rng: np.random.Generator, rows: int, cols: int, *, group: int = 128) -> Published:
    nibbles, zeros, scales, means = _groups(rng, rows, cols, group)

    def in_order(numbers: np.ndarray) -> np.ndarray:
        return words(numbers.reshape(len(numbers), -1, 8)[..., AWQ_ORDER]).squeeze(-1)

    tensors = {"qweight": in_order(nibbles.T), "qzeros": in_order(zeros), "scales": scales}
    settings = {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}
    return Published(settings, tensors, means)


def _groups(rng: np.random.Generator, rows: int, cols: int, group: int) -> tuple[np.ndarray, ...]:
    num_groups = -(-cols // group)
    nibbles = rng.integers(0, 16, (rows, cols))
    zeros = rng.integers(1, 16, (num_groups, rows))
    scales = rng.uniform(0.01, 0.02, (num_groups, rows)).astype(np.float16)
    of_column = np.arange(cols) // group
    means = scales.T[:, of_column].astype(np.float32) * (nibbles - zeros.T[:, of_column]).astype(np.float32)
    return nibbles, zeros, scales, means


def fp8(rng: np.random.Generator, rows: int, cols: int, *, tile: int | None = 128) -> Published:
    codes = rng.integers(0, 256, (rows, cols), dtype=np.uint8)
    codes[codes & 0x7F == 0x7F] = 0x7E
    height, width = (tile, tile) if tile else (rows, cols)
    scales = rng.uniform(0.001, 0.002, (-(-rows // height), -(-cols // width))).astype(np.float32)
    means = e4m3(codes) * scales[np.arange(rows) // height][:, np.arange(cols) // width]
    settings = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [tile, tile] if tile else None}
    tensors = {"weight": codes, "weight_scale_inv": scales if tile else scales.reshape(())}
    return Published(settings, tensors, means, is_float=True, dtypes={"weight": "F8_E4M3"})


def mxfp4(rng: np.random.Generator, rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blocks (rows, columns / 32, 16), exponents (rows, columns / 32), and what they mean."""
    nibbles = rng.integers(0, 16, (rows, cols))
    exponents = rng.integers(118, 123, (rows, cols // 32), dtype=np.uint8)
    means = E2M1[nibbles] * np.repeat(np.float32(2) ** (exponents.astype(np.float32) - 127), 32, axis=1)
    return bytes_of(nibbles, high_first=False).reshape(rows, -1, 16), exponents, means


Build = Callable[[np.random.Generator, int, int], Published]
LAYOUTS: dict[str, Build] = {
    "int8": int8,
    "nf4": four_bits,
    "nf4, nested": lambda rng, rows, cols: four_bits(rng, rows, cols, nested=True),
    "fp4": lambda rng, rows, cols: four_bits(rng, rows, cols, kind="fp4"),
    "gptq": gptq,
    "gptq, groups of 32": lambda rng, rows, cols: gptq(rng, rows, cols, group=32),
    "gptq, one group": lambda rng, rows, cols: gptq(rng, rows, cols, group=-1, with_order=False),
    "gptq, version 2": lambda rng, rows, cols: gptq(rng, rows, cols, version="gptq_v2"),
    "awq": awq,
    "awq, groups of 64": lambda rng, rows, cols: awq(rng, rows, cols, group=64),
    "fp8": fp8,
    "fp8, one scale": lambda rng, rows, cols: fp8(rng, rows, cols, tile=None),
}


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], dtypes: Mapping[str, str] | None = None) -> None:
    """A safetensors file; `dtypes` where the name of a tensor's type is not numpy's."""
    header, body = {}, b""
    for name, tensor in tensors.items():
        data = tensor.tobytes()
        dtype = (dtypes or {}).get(name) or DTYPES[tensor.dtype.name]
        header[name] = entry(list(tensor.shape), len(body), len(body) + len(data), dtype)
        body += data
    path.write_bytes(safetensors_bytes(header, body))
