"""Checkpoints that were quantized before they were published: several tensors make one weight.

`quantization_config` in config.json says by which method. Layouts: bitsandbytes' `QuantState`, AutoGPTQ's and AutoAWQ's
linear layers, the FP8 and MXFP4 integrations of transformers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from struct import pack
from typing import Any, NoReturn, TypeGuard

from kaiwa.errors import UnsupportedFormat, UnsupportedModel, UnusableFile
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.formats import FORMATS, check_supported

KIND = "safetensors"
PART_FORMATS = frozenset({"U8", "I8", "I32", "F8_E4M3"})
"""Formats that parts of a quantized weight may have and plain weights may not."""

_HINT = "get it unquantized, or as a GGUF file"
_WORD_NUMBERS = 8  # of 4 bits in 32


@dataclass(frozen=True, slots=True)
class QuantizedTensor(Tensor):
    """A weight whose numbers are spread over several tensors.

    `shape` is the weight's own, and `data` its largest part's. `format` names the layout: "INT8", "NF4", "FP4", "GPTQ",
    "AWQ", "FP8" or "MXFP4"; which `parts` and `sizes` belong to it stands at the function below that makes it.
    """

    parts: Mapping[str, Tensor]
    sizes: Mapping[str, float]
    range: tuple[int, int, int]
    """How many rows the parts have, which of them is the weight's first, and how far it is to the next."""
    is_sideways: bool = False
    """Whether `shape` ends with columns and rows, as GPT-OSS writes its experts, instead of rows and columns."""

    @property
    def num_bytes(self) -> int:
        whole = sum(len(part.data) for part in self.parts.values())
        return whole * (math.prod(self.shape) // self._columns) // self.range[0]

    @property
    def _columns(self) -> int:
        return self.shape[-2 if self.is_sideways else -1]

    def part(self, index: int) -> QuantizedTensor:
        rest = self.shape[1:]
        total, first, step = self.range
        return replace(self, shape=rest, range=(total, first + index * step * (math.prod(rest) // self._columns), step))

    def rows(self, start: int, stop: int, step: int = 1) -> QuantizedTensor:
        if self.is_sideways or len(self.shape) != 2:
            raise UnsupportedModel(f"rows of tensor {self.name!r} lie across those of its {self.format} parts")
        total, first, between = self.range
        shape = (len(range(start, stop, step)), *self.shape[1:])
        return replace(self, shape=shape, range=(total, first + start * between, step * between))

    def transposed(self) -> QuantizedTensor:
        if len(self.shape) != 2:
            raise UnsupportedModel(f"tensor {self.name!r} has {len(self.shape)} dimensions, and cannot be turned")
        return replace(self, shape=self.shape[::-1], is_sideways=not self.is_sideways)


def combine(tensors: Mapping[str, Tensor], settings: Mapping[str, Any], *, path: Path) -> dict[str, Tensor]:
    """`tensors` with those that make one weight joined under its name (`….q_proj.weight`).

    `settings` is the `quantization_config`. Raises `UnsupportedFormat` for methods and variants of them that Kaiwa does
    not read, `UnusableFile` where a part is missing or has an impossible shape.
    """
    method = settings.get("quant_method")
    if method is None and (settings.get("load_in_4bit") or settings.get("load_in_8bit")):
        method = "bitsandbytes"  # whose first checkpoints did not say so
    if not isinstance(method, str) or method not in _METHODS:
        raise UnsupportedFormat(
            path,
            KIND,
            f"it was quantized by the method {method!r}; Kaiwa reads {', '.join(sorted(_METHODS))}",
            hint=_HINT,
        )
    joiner = _Joiner(dict(tensors), settings, method, path)
    _METHODS[method](joiner)
    for tensor in joiner.tensors.values():
        if not isinstance(tensor, QuantizedTensor):
            check_supported(FORMATS[tensor.format], tensor=tensor.name, path=path, kind=KIND)
    return joiner.tensors


@dataclass(frozen=True, slots=True)
class _Joiner:
    """Takes parts out of `tensors` and puts whole weights in."""

    tensors: dict[str, Tensor]
    settings: Mapping[str, Any]
    method: str
    path: Path

    def names_ending(self, suffix: str) -> list[str]:
        """What comes before the suffix in the names that have it."""
        return [name.removesuffix(suffix) for name in self.tensors if name.endswith(suffix)]

    def take(self, name: str, *formats: str) -> Tensor:
        tensor = self.tensors.pop(name, None)
        if tensor is None:
            self.fail(f"tensor {name!r} is missing, which its {self.method} weight needs")
        if formats and tensor.format not in formats:
            self.fail(f"tensor {name!r} is in {tensor.format}, and {self.method} keeps it in {' or '.join(formats)}")
        return tensor

    def take_shaped(self, name: str, shape: tuple[int, ...], *formats: str) -> Tensor:
        tensor = self.take(name, *formats)
        if tensor.shape != shape:
            self.fail(f"tensor {name!r} has the shape {tensor.shape}, and its {self.method} weight needs {shape}")
        return tensor

    def take_matrix(self, name: str, format: str) -> Tensor:
        tensor = self.take(name, format)
        if len(tensor.shape) != 2 or 0 in tensor.shape:
            self.fail(f"tensor {name!r} has the shape {tensor.shape}, and should be a matrix")
        return tensor

    def put(self, name: str, format: str, shape: tuple[int, ...], parts: Mapping[str, Tensor], **sizes: float) -> None:
        largest = max(parts.values(), key=lambda part: len(part.data))
        every_row = (math.prod(shape[:-1]), 0, 1)
        self.tensors[name] = QuantizedTensor(name, format, shape, largest.data, parts, sizes, every_row)

    def one_of(self, key: str, known: tuple[object, ...]) -> Any:
        """The setting of this name; the first of the known values where it is left out."""
        value = self.settings.get(key)
        if value is None:
            return known[0]
        if value not in known:
            raise UnsupportedFormat(
                self.path,
                KIND,
                f"it was quantized by {self.method} with {key}={value!r}; Kaiwa reads {' and '.join(map(repr, known))}",
                hint=_HINT,
            )
        return value

    def fail(self, reason: str) -> NoReturn:
        raise UnusableFile(self.path, KIND, reason)


def _bitsandbytes(joiner: _Joiner) -> None:
    """NF4 and FP4: `weight` (high nibble first), `table`, `scales` or nested ones. INT8: `weight`, `scales` per row."""
    for kind in ("nf4", "fp4"):
        for name in joiner.names_ending(f".quant_state.bitsandbytes__{kind}"):
            _bitsandbytes_4bit(joiner, name, kind)
    for module in joiner.names_ending(".SCB"):
        name = f"{module}.weight"
        weight = joiner.take_matrix(name, "I8")
        parts = {"weight": weight, "scales": joiner.take_shaped(f"{module}.SCB", weight.shape[:1], "F32")}
        layout = joiner.tensors.pop(f"{module}.weight_format", None)
        if layout is not None and any(layout.data):
            joiner.fail(f"tensor {name!r} is stored in tiles of one graphics card, and not row by row")
        joiner.put(name, "INT8", weight.shape, parts)


def _bitsandbytes_4bit(joiner: _Joiner, name: str, kind: str) -> None:
    state = _read_state(joiner, f"{name}.quant_state.bitsandbytes__{kind}")
    rows, columns = state["shape"]
    block = state["blocksize"]
    weight = joiner.take(name)
    if 2 * len(weight.data) != rows * columns:
        joiner.fail(f"tensor {name!r} has {len(weight.data):,} bytes, and {rows} x {columns} numbers of 4 bits do not")
    num_blocks = -(-rows * columns // block)
    scales = joiner.take_shaped(f"{name}.absmax", (num_blocks,), "F32", "U8")
    parts = {"weight": weight, "table": joiner.take_shaped(f"{name}.quant_map", (16,), "F32"), "scales": scales}
    sizes: dict[str, float] = {"block": block}
    if scales.format == "U8":
        nested, offset = state.get("nested_blocksize"), state.get("nested_offset")
        if not _is_size(nested) or not isinstance(offset, int | float):
            joiner.fail(f"tensor {name!r} has a nested_blocksize of {nested!r} and a nested_offset of {offset!r}")
        parts["nested_scales"] = joiner.take_shaped(f"{name}.nested_absmax", (-(-num_blocks // nested),), "F32")
        parts["nested_table"] = joiner.take_shaped(f"{name}.nested_quant_map", (256,), "F32")
        sizes |= {"nested_block": nested, "nested_offset": offset}
    joiner.put(name, kind.upper(), (rows, columns), parts, **sizes)


def _read_state(joiner: _Joiner, name: str) -> dict[str, Any]:
    """The JSON that bitsandbytes keeps beside a weight as bytes."""
    try:
        state = json.loads(bytes(joiner.take(name, "U8").data))
    except ValueError as error:
        raise UnusableFile(joiner.path, KIND, f"tensor {name!r} should hold JSON: {error}") from error
    shape = state.get("shape") if isinstance(state, dict) else None
    is_matrix = isinstance(shape, list) and len(shape) == 2 and all(map(_is_size, shape))
    if not is_matrix or not _is_size(state.get("blocksize")):
        joiner.fail(f"tensor {name!r} describes an impossible weight: {state!r}")
    return dict(state)


def _gptq(joiner: _Joiner) -> None:
    """`weight` (columns / 8, rows) and `zeros` (groups, rows / 8) words, `scales` (groups, rows)."""
    joiner.one_of("bits", (4,))
    zero_offset = 1 if joiner.one_of("checkpoint_format", ("gptq", "gptq_v2")) == "gptq" else 0
    for module in joiner.names_ending(".qweight"):
        weight = joiner.take_matrix(f"{module}.qweight", "I32")
        columns, rows = weight.shape[0] * _WORD_NUMBERS, weight.shape[1]
        group = _group_size(joiner, columns)
        order = joiner.tensors.pop(f"{module}.g_idx", None)
        if order is not None and bytes(order.data) != _regular_groups(columns, group):
            raise UnsupportedFormat(
                joiner.path,
                KIND,
                f"tensor {order.name!r} gives columns to groups out of order (desc_act), which Kaiwa does not read",
                hint=f"{_HINT}, or quantized by GPTQ with desc_act=false",
            )
        _put_groups(joiner, module, "GPTQ", weight, (rows, columns), group, zero_offset)


def _awq(joiner: _Joiner) -> None:
    """`weight` (columns, rows / 8) and `zeros` (groups, rows / 8) words, `scales` (groups, rows)."""
    joiner.one_of("bits", (4,))
    joiner.one_of("version", ("gemm", "GEMM"))
    joiner.one_of("zero_point", (True,))
    for module in joiner.names_ending(".qweight"):
        weight = joiner.take_matrix(f"{module}.qweight", "I32")
        columns, rows = weight.shape[0], weight.shape[1] * _WORD_NUMBERS
        _put_groups(joiner, module, "AWQ", weight, (rows, columns), _group_size(joiner, columns), 0)


def _put_groups(
    joiner: _Joiner, module: str, format: str, weight: Tensor, shape: tuple[int, int], group: int, zero_offset: int
) -> None:
    rows, columns = shape
    num_groups = -(-columns // group)
    if columns % 32 or rows % _WORD_NUMBERS:
        joiner.fail(f"tensor {weight.name!r} holds {rows} x {columns} numbers, which are not multiples of 8 and 32")
    parts = {
        "weight": weight,
        "zeros": joiner.take_shaped(f"{module}.qzeros", (num_groups, rows // _WORD_NUMBERS), "I32"),
        "scales": joiner.take_shaped(f"{module}.scales", (num_groups, rows), "F16", "BF16", "F32"),
    }
    joiner.put(f"{module}.weight", format, shape, parts, group=group, zero_offset=zero_offset)


def _group_size(joiner: _Joiner, columns: int) -> int:
    group: object = joiner.settings.get("group_size", 128)
    if group == -1:
        return columns
    if not _is_size(group) or group % 32:
        joiner.fail(f"group_size is {group!r}; it must be -1 or a multiple of 32")
    return group


@lru_cache(maxsize=8)
def _regular_groups(columns: int, group: int) -> bytes:
    return pack(f"<{columns}i", *(column // group for column in range(columns)))


def _fp8(joiner: _Joiner) -> None:
    """`weight` (rows, columns) of e4m3, `scales` one per tile, or one for all."""
    joiner.one_of("fmt", ("e4m3",))
    tile = joiner.settings.get("weight_block_size")
    if tile is not None and not (isinstance(tile, list) and len(tile) == 2 and all(map(_is_size, tile))):
        joiner.fail(f"weight_block_size is {tile!r}; it must be null or two whole numbers above 0")
    for name in joiner.names_ending("_scale_inv"):
        weight = joiner.take_matrix(name, "F8_E4M3")
        rows, columns = weight.shape
        down, across = tile or weight.shape
        scales = joiner.take(f"{name}_scale_inv", "F32", "F16", "BF16")
        num_tiles = (-(-rows // down), -(-columns // across))
        if scales.shape != num_tiles and not (tile is None and scales.shape in ((), (1,))):
            joiner.fail(f"tensor {scales.name!r} has the shape {scales.shape}, and should have {num_tiles}")
        joiner.put(name, "FP8", weight.shape, {"weight": weight, "scales": scales}, rows=down, columns=across)
    # By these, graphics cards round activations to 8 bits, too; we need not.
    for name in [name for name in joiner.tensors if name.endswith((".activation_scale", ".input_scale"))]:
        del joiner.tensors[name]


def _mxfp4(joiner: _Joiner) -> None:
    """`weight` (experts, rows, columns / 32, 16), the even column in the low nibble; `scales`, exponents of 2."""
    for name in joiner.names_ending("_blocks"):
        weight = joiner.take(f"{name}_blocks", "U8")
        if len(weight.shape) != 4 or weight.shape[-1] != 16 or 0 in weight.shape:
            joiner.fail(f"tensor {weight.name!r} has the shape {weight.shape}, not (experts, rows, blocks, 16)")
        experts, rows, blocks, _ = weight.shape
        scales = joiner.take_shaped(f"{name}_scales", (experts, rows, blocks), "U8")
        shape, parts = (experts, 32 * blocks, rows), {"weight": weight, "scales": scales}
        every_row = (experts * rows, 0, 1)
        joiner.tensors[name] = QuantizedTensor(
            name, "MXFP4", shape, weight.data, parts, {}, every_row, is_sideways=True
        )


def _is_size(value: Any) -> TypeGuard[int]:
    return type(value) is int and value > 0


_METHODS: dict[str, Callable[[_Joiner], None]] = {
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "fp8": _fp8,
    "gptq": _gptq,
    "mxfp4": _mxfp4,
}
