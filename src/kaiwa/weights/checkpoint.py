"""A checkpoint: a model's configuration and its named tensors, whatever files they came from.

Names and configuration are those of Hugging Face (`model.layers.0.self_attn.q_proj.weight`, `config.json`), for GGUF
files too; `weights.names` translates.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

_UNSIGNED = {2: "H", 4: "I"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as it lies in its file.

    `shape` is in PyTorch's order (rows, columns); `format` is a name of `weights.formats`; `data` are the raw bytes,
    read-only and memory-mapped.
    """

    name: str
    format: str
    shape: tuple[int, ...]
    data: memoryview

    @property
    def num_bytes(self) -> int:
        """Bytes in the file."""
        return len(self.data)

    def part(self, index: int) -> Tensor:
        """One of the tensors that lie one after another along the first dimension, under the whole one's name."""
        num_bytes = len(self.data) // self.shape[0]
        return replace(self, shape=self.shape[1:], data=self.data[index * num_bytes : (index + 1) * num_bytes])

    def rows(self, start: int, stop: int, step: int = 1) -> Tensor:
        """Some of those parts, as a tensor of as many dimensions; copied where they do not lie side by side."""
        num_bytes = len(self.data) // self.shape[0]
        shape = (len(range(start, stop, step)), *self.shape[1:])
        if step == 1:
            return replace(self, shape=shape, data=self.data[start * num_bytes : stop * num_bytes])
        picked = b"".join(self.data[row * num_bytes : (row + 1) * num_bytes] for row in range(start, stop, step))
        return replace(self, shape=shape, data=memoryview(picked))

    def transposed(self) -> Tensor:
        """The tensor of two dimensions with rows for columns, copied. Its numbers must not lie in blocks."""
        rows, columns = self.shape
        numbers = array(_UNSIGNED[len(self.data) // (rows * columns)], self.data.tobytes())
        turned = b"".join(numbers[column::columns].tobytes() for column in range(columns))
        return replace(self, shape=(columns, rows), data=memoryview(turned))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened model. Its tensors' memory is valid until `close`.

    `metadata` is a GGUF file's own key-value table (empty for safetensors), from which the tokenizer is rebuilt.
    """

    path: Path
    kind: Literal["GGUF", "safetensors"]
    config: Mapping[str, Any]
    generation_config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    files: tuple[Path, ...]
    """The files that hold the tensors."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    release: Callable[[Tensor], None] = lambda tensor: None
    """Tells the system that this tensor's file pages are not needed for now."""
    check: Callable[[], None] = lambda: None
    """Raises `UnusableFile` where a file has become shorter since it was opened."""
    close: Callable[[], None] = lambda: None

    @property
    def num_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.num_bytes for tensor in self.tensors.values())

    @property
    def main_format(self) -> str:
        """The number format of most of the weights' bytes in layers; embeddings are often stored more finely."""
        sizes: Counter[str] = Counter()
        for tensor in self.tensors.values():
            if len(tensor.shape) >= 2:
                sizes[tensor.format] += tensor.num_bytes
        return sizes.most_common(1)[0][0] if sizes else "none"
