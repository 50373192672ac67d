"""Packs weights that quantized checkpoints spread over several tensors: `weights.quantized` says which."""

from __future__ import annotations

from collections.abc import Callable

from kaiwa.engines.native import _native
from kaiwa.engines.native._native import Matrix, ThreadPool
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.quantized import QuantizedTensor


def pack(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    """The matrix that the parts make. Raises ValueError where they do not fit each other or hold a broken number."""
    if tensor.is_sideways:
        raise ValueError(f"its rows lie across those of its {tensor.format} parts")
    return _PACKERS[tensor.format](tensor, rows, columns, pool)


def _pack_int8(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    # What bitsandbytes stores is the largest weight of each row, which became 127.
    scales = memoryview(bytearray(_floats(tensor.parts["scales"]))).cast("f")
    for row, largest in enumerate(scales):
        scales[row] = largest / 127
    return _native.pack_int8(tensor.parts["weight"].data, scales, rows, columns, tensor.range, pool)


def _pack_table4(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    parts, sizes = tensor.parts, tensor.sizes
    if "nested_scales" in parts:
        scales = _native.unpack_nested(
            parts["scales"].data,
            _floats(parts["nested_table"]),
            _floats(parts["nested_scales"]),
            int(sizes["nested_block"]),
            sizes["nested_offset"],
        )
    else:
        scales = _floats(parts["scales"])
    block = int(sizes["block"])
    return _native.pack_table4(
        parts["weight"].data, _floats(parts["table"]), scales, block, rows, columns, tensor.range, pool
    )


def _pack_gptq(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    parts, group, zero_offset = tensor.parts, int(tensor.sizes["group"]), int(tensor.sizes["zero_offset"])
    weight, zeros, scales = parts["weight"].data, parts["zeros"].data, _floats(parts["scales"])
    return _native.pack_gptq(weight, zeros, scales, group, zero_offset, rows, columns, tensor.range, pool)


def _pack_awq(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    parts, group = tensor.parts, int(tensor.sizes["group"])
    weight, zeros, scales = parts["weight"].data, parts["zeros"].data, _floats(parts["scales"])
    return _native.pack_awq(weight, zeros, scales, group, rows, columns, tensor.range, pool)


def _pack_fp8(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    parts, down, across = tensor.parts, int(tensor.sizes["rows"]), int(tensor.sizes["columns"])
    return _native.pack_float8(
        parts["weight"].data, _floats(parts["scales"]), down, across, rows, columns, tensor.range, pool
    )


def _pack_mxfp4(tensor: QuantizedTensor, rows: int, columns: int, pool: ThreadPool) -> Matrix:
    return _native.pack_mxfp4(
        tensor.parts["weight"].data, tensor.parts["scales"].data, rows, columns, tensor.range, pool
    )


def _floats(part: Tensor) -> memoryview[float]:
    count = 1
    for size in part.shape:
        count *= size
    try:
        return _native.unpack(part.format, part.data, 1, count)
    except ValueError as error:
        raise ValueError(f"its part {part.name!r} holds a number that is infinite or not a number") from error


_PACKERS: dict[str, Callable[[QuantizedTensor, int, int, ThreadPool], Matrix]] = {
    "INT8": _pack_int8,
    "NF4": _pack_table4,
    "FP4": _pack_table4,
    "GPTQ": _pack_gptq,
    "AWQ": _pack_awq,
    "FP8": _pack_fp8,
    "MXFP4": _pack_mxfp4,
}
