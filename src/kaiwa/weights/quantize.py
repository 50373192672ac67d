"""Quantize a checkpoint as it is opened: what is rounded to which number format, and the checkpoint that comes of it.

Knows nothing of how numbers are rounded: that is the `Rounder` of an engine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from kaiwa.errors import InvalidOption, UnusableFile, did_you_mean
from kaiwa.events import Progress
from kaiwa.weights.checkpoint import Checkpoint, Tensor
from kaiwa.weights.formats import FORMATS
from kaiwa.weights.gguf_writer import TensorInfo
from kaiwa.weights.quantized_cache import Entry, Write

_PLAIN = ("F32", "F16", "BF16")
_BLOCK_SIZE = 32
_PIECE_BYTES = 8 << 20
"""How much of a tensor is rounded at a time: what quantizing takes of memory, beside a third of it for the result."""
# What every token passes through alike, what steers the rest, and values: a small share of the numbers, and most of the
# damage. Next come the projections back from the feed-forward's inside, where a few numbers are far larger than others.
_SENSITIVE = re.compile(
    r"embed|lm_head|\brouter\b|\bgate\.weight$|shared_expert_gate|\bin_proj_(a|b|ba)\b|\bv_proj\b|\b(kv|k|v)_b_proj\b"
)
_FINER = re.compile(r"\bdown_proj\b|\bw2\b|\bqkv_proj\b")
_FINER_OUTSIDE = re.compile(r"\b(gate_proj|up_proj|gate_up_proj|w1|w3)\b")
_OUTSIDE = 6
"""The first and last of so many parts of the layers."""
_ON_THEIR_SIDE = ("gpt_oss",)
"""Families whose plain checkpoints hold experts as their inputs by their outputs."""
_LAYER = re.compile(r"\.layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Matrices are rounded to `format`, those that need it to `finer` or `sensitive`; vectors stay as they are."""

    format: str
    finer: str
    sensitive: str

    def format_of(self, name: str, num_layers: int) -> str:
        """The format that the matrix of this name is rounded to, in a model of so many layers."""
        if _SENSITIVE.search(name):
            return self.sensitive
        if _FINER.search(name) or (_FINER_OUTSIDE.search(name) and _is_outside(name, num_layers)):
            return self.finer
        return self.format


def _is_outside(name: str, num_layers: int) -> bool:
    layer = _LAYER.search(name)
    return layer is not None and not num_layers <= _OUTSIDE * int(layer[1]) < num_layers * (_OUTSIDE - 1)


# Measured on SmolLM2-135M in bfloat16, as the KL divergence that four bits cost: values alone 0.047, projections back
# 0.084, each of the other matrices 0.007 to 0.029; all of them 0.193, and with these exceptions under 0.06.
RECIPES = {"int8": Recipe("Q8_0", "Q8_0", "Q8_0"), "int4": Recipe("Q4_1", "Q5_1", "Q8_0")}
"""What `quantization=` may be."""


class Rounder(Protocol):
    """What an engine does for this module, on all of its threads."""

    def round(self, data: memoryview, format: str, to: str) -> bytes:
        """Numbers of a plain format in blocks of another. Raises `OverflowError` where one is not finite."""
        ...

    def checksum(self, data: memoryview) -> int:
        """A number of 64 bits that changes when any byte does."""
        ...


def find_recipe(quantization: str) -> Recipe:
    """The recipe of this name. Raises `InvalidOption` that offers the nearest."""
    if not isinstance(quantization, str) or quantization not in RECIPES:
        raise InvalidOption(
            f"quantization={quantization!r} is not known", hint=did_you_mean(str(quantization), RECIPES)
        )
    return RECIPES[quantization]


def quantized_bytes(checkpoint: Checkpoint, quantization: str) -> int:
    """Bytes of all tensors once they are quantized. Raises `InvalidOption` as `quantize` does."""
    rounded = {info.name: info.num_bytes for info in _plan(checkpoint, quantization)}
    return sum(rounded.get(tensor.name, tensor.num_bytes) for tensor in checkpoint.tensors.values())


def possible_bytes(checkpoint: Checkpoint) -> dict[str, int]:
    """`quantized_bytes` for each recipe; none where the checkpoint cannot be quantized."""
    try:
        return {name: quantized_bytes(checkpoint, name) for name in RECIPES}
    except InvalidOption:
        return {}


def quantize(
    checkpoint: Checkpoint,
    quantization: str,
    *,
    rounder: Rounder,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Checkpoint:
    """The same model with its matrices rounded, from Kaiwa's cache where they lie there already.

    Closing it closes `checkpoint`. What is made goes to the cache piece by piece, and is mapped from there: memory
    holds a few megabytes of it at a time. `on_progress` is told the bytes read, in the stage "quantize"; the stage is
    "waiting" while another process quantizes the same.

    Raises `InvalidOption` for an unknown name, or a checkpoint that is quantized already; `UnusableFile` where weights
    are not finite, `CacheFailed` where the result cannot be kept.
    """
    infos = _plan(checkpoint, quantization)
    total = sum(len(checkpoint.tensors[info.name].data) for info in infos)

    def write_all(write: Write) -> None:
        done = 0
        for info in infos:
            tensor = checkpoint.tensors[info.name]
            write(info, _rounded(checkpoint, tensor, info.format, rounder))
            done += len(tensor.data)
            on_progress(Progress("quantize", done, total))

    entry = Entry(checkpoint, quantization, infos)
    file = entry.open_or_make(write_all, rounder.checksum, on_wait=lambda: on_progress(Progress("waiting", 0, total)))
    with ExitStack() as opened:
        opened.callback(file.close)
        opened.callback(checkpoint.close)

        def release(tensor: Tensor) -> None:
            (file if tensor.name in file.tensors else checkpoint).release(tensor)

        return replace(
            checkpoint,
            tensors={**checkpoint.tensors, **file.tensors},
            release=release,
            close=opened.pop_all().close,
        )


def _rounded(checkpoint: Checkpoint, tensor: Tensor, format: str, rounder: Rounder) -> Iterator[bytes]:
    row_bytes = FORMATS[tensor.format].num_bytes(tensor.shape[-1:])
    step = max(_PIECE_BYTES // row_bytes, 1) * row_bytes
    for begin in range(0, len(tensor.data), step):
        checkpoint.check()
        try:
            yield rounder.round(tensor.data[begin : begin + step], tensor.format, format)
        except OverflowError as error:
            raise UnusableFile(
                checkpoint.path,
                checkpoint.kind,
                f"tensor {tensor.name!r} holds numbers that are infinite, not numbers or too large to quantize",
                hint="the weights are damaged: download them again",
            ) from error
        checkpoint.release(tensor)


def _plan(checkpoint: Checkpoint, quantization: str) -> list[TensorInfo]:
    recipe = find_recipe(quantization)
    if format := quantized_format(checkpoint):
        raise InvalidOption(
            f"{checkpoint.path} is quantized already ({format}), and quantization={quantization!r} would only lose "
            "more of it",
            hint="leave quantization out, or pass the model's unquantized weights",
        )
    if checkpoint.config["model_type"] in _ON_THEIR_SIDE:
        raise InvalidOption(
            f"{checkpoint.path} holds its experts column by column, and blocks are rounded row by row",
            hint="leave quantization out, or get the model in MXFP4, as it is published",
        )
    return [
        TensorInfo(tensor.name, recipe.format_of(tensor.name, checkpoint.config["num_hidden_layers"]), tensor.shape)
        for tensor in checkpoint.tensors.values()
        if _is_matrix(tensor) and tensor.shape[-1] % _BLOCK_SIZE == 0
    ]


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) in (2, 3) and tensor.format in _PLAIN and not tensor.name.endswith("bias")


def quantized_format(checkpoint: Checkpoint) -> str | None:
    """The format, or the published method, that most of the matrices have; None where they are plain numbers."""
    method = checkpoint.config.get("quantization_config")
    if isinstance(method, dict):
        return str(method.get("quant_method", "an unnamed method"))
    formats = Counter(
        tensor.format
        for tensor in checkpoint.tensors.values()
        if len(tensor.shape) >= 2 and tensor.format not in _PLAIN
    )
    return formats.most_common(1)[0][0] if formats else None
