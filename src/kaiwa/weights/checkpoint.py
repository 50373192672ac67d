"""A checkpoint: a model's configuration and its named tensors, whatever files they came from.

Names and configuration are those of Hugging Face (`model.layers.0.self_attn.q_proj.weight`, `config.json`), for GGUF
files too; `weights.names` translates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


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
    metadata: Mapping[str, Any] = field(default_factory=dict)
    release: Callable[[Tensor], None] = lambda tensor: None
    """Tells the system that this tensor's file pages are not needed for now."""
    close: Callable[[], None] = lambda: None

    @property
    def num_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(len(tensor.data) for tensor in self.tensors.values())
