"""A checkpoint's tensors, packed for the kernels one after another, as a model's program asks for them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kaiwa.engines.native import quantized
from kaiwa.engines.native._native import Matrix, ThreadPool, Vector, unpack
from kaiwa.errors import UnsupportedModel, UnusableFile
from kaiwa.events import Progress
from kaiwa.weights.checkpoint import Checkpoint, Tensor
from kaiwa.weights.formats import FORMATS
from kaiwa.weights.quantized import QuantizedTensor

Arrange = Callable[[Tensor], Sequence[Tensor]]


class Weights:
    """Packs each tensor when it is first asked for, and lets go of its file pages after."""

    def __init__(
        self, checkpoint: Checkpoint, pool: ThreadPool, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        self._checkpoint = checkpoint
        self._pool = pool
        self._on_progress = on_progress
        self._packed: dict[str, Matrix] = {}
        self._parts: dict[str, tuple[Tensor, Tensor]] = {}  # of split tensors: themselves, and the whole
        self._read_bytes = 0
        self._total_bytes = checkpoint.num_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes of all packed matrices."""
        return sum(matrix.nbytes for matrix in self._packed.values())

    def __contains__(self, name: str) -> bool:
        return name in self._parts or name in self._checkpoint.tensors

    def split(self, name: str, rows: Mapping[str, int], columns: int) -> None:
        """Give parts of a matrix, so many rows each and one after another, names of their own."""
        whole = self._tensor(name, (sum(rows.values()), columns))
        first = 0
        for part, count in rows.items():
            self._parts[part] = (replace(whole.rows(first, first + count), name=part), whole)
            first += count

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """The weight matrix of this name. Raises `UnsupportedModel` where it is missing or has another shape."""
        if name not in self._packed:
            self._packed[name] = self._pack(self._tensor(name, (rows, columns)), rows, columns)
        return self._packed[name]

    def convolution(self, name: str, channels: int, taps: int) -> Matrix:
        """The weights of a convolution of each channel by itself, a row per channel."""
        tensor = self._checkpoint.tensors.get(name)
        # Hugging Face's shape says that each channel sees one channel; GGUF's does not.
        shape = (channels, 1, taps) if tensor is not None and len(tensor.shape) == 3 else (channels, taps)
        return self._pack(self._tensor(name, shape), channels, taps)

    def vector(self, name: str, length: int, *, offset: float = 0.0) -> Vector:
        """The norm weight or bias of this name, with `offset` added to each number."""
        return self._pack(self._tensor(name, (length,)), 1, length).to_vector(offset)

    def optional_vector(self, name: str, length: int) -> Vector | None:
        """As `vector`, or None where the checkpoint has none."""
        return self.vector(name, length) if name in self else None

    def stack(self, name: str, shape: tuple[int, ...], arrange: Arrange = lambda part: [part]) -> list[list[Matrix]]:
        """The tensors that lie one after another in this one, as the matrices that `arrange` makes of each.

        A part of one dimension becomes a matrix of one row.
        """
        whole = self._tensor(name, shape)
        stack = []
        for index in range(shape[0]):
            matrices = []
            for number, part in enumerate(arrange(whole.part(index))):
                rows, columns = part.shape if len(part.shape) == 2 else (1, *part.shape)
                matrices.append(self._pack(part, rows, columns))
                self._packed[f"{name}[{index}][{number}]"] = matrices[-1]
            stack.append(matrices)
        return stack

    def joined(self, name: str, shape: tuple[int, int, int], *, is_turned: bool = False) -> Matrix:
        """The matrices that lie one after another in this tensor as one, below each other.

        `is_turned` takes each with rows for columns. Numbers in blocks, which lie along rows, become halves then.
        """
        whole = self._tensor(name, shape)
        count, rows, columns = shape
        if not is_turned:
            return self._pack(replace(whole, shape=(count * rows, columns)), count * rows, columns)
        parts = [_turned(whole.part(index)) for index in range(count)]
        data = memoryview(b"".join(part.data for part in parts))
        return self._pack(replace(parts[0], shape=(count * columns, rows), data=data), count * columns, rows)

    def numbers(self, name: str) -> list[float] | None:
        """A small tensor as plain numbers, or None where the checkpoint has none."""
        tensor = self._checkpoint.tensors.get(name)
        if tensor is None:
            return None
        return list(self._pack(tensor, 1, tensor.shape[0]).unpack().cast("B").cast("f"))

    def needed_numbers(self, name: str) -> list[float]:
        """As `numbers`. Raises `UnsupportedModel` where the checkpoint has none."""
        numbers = self.numbers(name)
        if numbers is None:
            raise self._missing(name)
        return numbers

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._parts[name][0] if name in self._parts else self._checkpoint.tensors.get(name)
        if tensor is None:
            raise self._missing(name)
        if shape not in (tensor.shape, (1, *tensor.shape)):  # GGUF files write a matrix of one row as a vector
            raise UnsupportedModel(
                f"{self._checkpoint.path}: tensor {name!r} has the shape {_words(tensor.shape)}, "
                f"and the configuration asks for {_words(shape)}"
            )
        return tensor

    def _missing(self, name: str) -> UnsupportedModel:
        return UnsupportedModel(f"{self._checkpoint.path} has no tensor {name!r}, which its family needs")

    def _pack(self, tensor: Tensor, rows: int, columns: int) -> Matrix:
        self._checkpoint.check()
        try:
            if isinstance(tensor, QuantizedTensor):
                matrix = quantized.pack(tensor, rows, columns, self._pool)
            else:
                matrix = Matrix(tensor.format, tensor.data, rows, columns, self._pool)
        except ValueError as error:
            checkpoint = self._checkpoint
            raise UnusableFile(checkpoint.path, checkpoint.kind, f"tensor {tensor.name!r}: {error}") from error
        self._checkpoint.release(self._parts[tensor.name][1] if tensor.name in self._parts else tensor)
        self._read_bytes += tensor.num_bytes
        if self._on_progress:
            self._on_progress(Progress("load", self._read_bytes, self._total_bytes))
        return matrix


def vector_of(numbers: Iterable[float]) -> Vector:
    """Numbers that no tensor holds as they are, as a norm's weight."""
    packed = array("f", numbers)
    return Matrix("F32", packed.tobytes(), 1, len(packed)).to_vector()


def _turned(tensor: Tensor) -> Tensor:
    if FORMATS[tensor.format].block_size > 1:
        numbers = unpack(tensor.format, tensor.data, *tensor.shape).cast("B").cast("f")
        halves = struct.pack(f"<{len(numbers)}e", *numbers)
        tensor = replace(tensor, format="F16", data=memoryview(halves))
    return tensor.transposed()


def _words(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
