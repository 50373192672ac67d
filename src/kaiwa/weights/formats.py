"""Number formats: how many bytes hold how many numbers, in GGUF and in safetensors files.

Sizes of all formats are known, so that any file can be checked; only some can be computed with (`is_supported`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kaiwa.errors import UnsupportedFormat, UnusableFile


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A row of numbers is stored in blocks of `block_size` numbers, each block in `block_bytes` bytes."""

    name: str
    block_size: int
    block_bytes: int
    ggml_id: int | None = None
    """The number that GGUF files call it by; None where they have none."""
    is_supported: bool = False

    def num_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of a tensor of this `shape` (PyTorch's order: the last dimension is a row)."""
        return math.prod(shape) // self.block_size * self.block_bytes


# Sizes: ggml/src/ggml-common.h of llama.cpp; numbers: enum ggml_type of ggml/include/ggml.h.
_GGML = (
    NumberFormat("F32", 1, 4, 0, is_supported=True),
    NumberFormat("F16", 1, 2, 1, is_supported=True),
    NumberFormat("Q4_0", 32, 18, 2, is_supported=True),
    NumberFormat("Q4_1", 32, 20, 3, is_supported=True),
    NumberFormat("Q5_0", 32, 22, 6, is_supported=True),
    NumberFormat("Q5_1", 32, 24, 7, is_supported=True),
    NumberFormat("Q8_0", 32, 34, 8, is_supported=True),
    NumberFormat("Q8_1", 32, 36, 9, is_supported=True),
    NumberFormat("Q2_K", 256, 84, 10, is_supported=True),
    NumberFormat("Q3_K", 256, 110, 11, is_supported=True),
    NumberFormat("Q4_K", 256, 144, 12, is_supported=True),
    NumberFormat("Q5_K", 256, 176, 13, is_supported=True),
    NumberFormat("Q6_K", 256, 210, 14, is_supported=True),
    NumberFormat("Q8_K", 256, 292, 15),
    NumberFormat("IQ2_XXS", 256, 66, 16),
    NumberFormat("IQ2_XS", 256, 74, 17),
    NumberFormat("IQ3_XXS", 256, 98, 18),
    NumberFormat("IQ1_S", 256, 50, 19),
    NumberFormat("IQ4_NL", 32, 18, 20, is_supported=True),
    NumberFormat("IQ3_S", 256, 110, 21),
    NumberFormat("IQ2_S", 256, 82, 22),
    NumberFormat("IQ4_XS", 256, 136, 23, is_supported=True),
    NumberFormat("I8", 1, 1, 24),
    NumberFormat("I16", 1, 2, 25),
    NumberFormat("I32", 1, 4, 26),
    NumberFormat("I64", 1, 8, 27),
    NumberFormat("F64", 1, 8, 28),
    NumberFormat("IQ1_M", 256, 56, 29),
    NumberFormat("BF16", 1, 2, 30, is_supported=True),
    NumberFormat("TQ1_0", 256, 54, 34),
    NumberFormat("TQ2_0", 256, 66, 35),
    NumberFormat("MXFP4", 32, 17, 39, is_supported=True),
    NumberFormat("NVFP4", 64, 36, 40),
    NumberFormat("Q1_0", 128, 18, 41),
    NumberFormat("Q2_0", 64, 18, 42),
)

# Names and sizes: the Dtype enumeration of the safetensors library.
_SAFETENSORS_ONLY = (
    NumberFormat("BOOL", 1, 1),
    NumberFormat("U8", 1, 1),
    NumberFormat("U16", 1, 2),
    NumberFormat("U32", 1, 4),
    NumberFormat("U64", 1, 8),
    NumberFormat("F4", 2, 1),
    NumberFormat("F6_E2M3", 4, 3),
    NumberFormat("F6_E3M2", 4, 3),
    NumberFormat("F8_E4M3", 1, 1),
    NumberFormat("F8_E5M2", 1, 1),
    NumberFormat("F8_E8M0", 1, 1),
    NumberFormat("C64", 1, 8),
)
_SHARED = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8")

FORMATS = {format.name: format for format in (*_GGML, *_SAFETENSORS_ONLY)}
GGML_FORMATS = {format.ggml_id: format for format in _GGML}
SAFETENSORS_FORMATS = {name: FORMATS[name] for name in (*_SHARED, *(format.name for format in _SAFETENSORS_ONLY))}


def supported_names() -> list[str]:
    """The formats that Kaiwa computes with."""
    return [format.name for format in FORMATS.values() if format.is_supported]


def check_supported(format: NumberFormat, *, tensor: str, path: object, kind: str) -> None:
    """Raise `UnsupportedFormat` if Kaiwa cannot compute with the `format` that this `tensor` has."""
    if not format.is_supported:
        raise UnsupportedFormat(
            path,
            kind,
            f"tensor {tensor!r} has the number format {format.name}, which Kaiwa does not read",
            hint=f"get the model in one of {', '.join(supported_names())}",
        )


def check_shape(format: NumberFormat, shape: Sequence[int], *, tensor: str, path: object, kind: str) -> None:
    """Raise `UnusableFile` if rows of this `shape` are not whole blocks of the `format`."""
    columns = shape[-1] if shape else 1
    if columns % format.block_size:
        raise UnusableFile(
            path,
            kind,
            f"tensor {tensor!r} has rows of {columns:,} numbers, and {format.name} stores them in blocks of "
            f"{format.block_size}",
        )
