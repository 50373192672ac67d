"""GGUF files as Kaiwa writes them: tensors in any order and format, and hardly a key.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; `weights.gguf` reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO

from kaiwa.weights.formats import FORMATS

_MAGIC, _VERSION, _ALIGNMENT, _TEXT = b"GGUF", 3, 32, 8


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor to write; its shape is in PyTorch's order, its format a name of `weights.formats` that GGUF has."""

    name: str
    format: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of the tensor in the file."""
        return FORMATS[self.format].num_bytes(self.shape)


class GGUFWriter:
    """Writes a header that promises all `tensors`, and then their bytes, as they come, in the same order."""

    def __init__(self, file: IO[bytes], architecture: str, tensors: Sequence[TensorInfo]) -> None:
        self._file = file
        file.write(_header(architecture, tensors))

    def write(self, info: TensorInfo, pieces: Iterable[bytes]) -> None:
        """The bytes of the next tensor."""
        num_bytes = 0
        for piece in pieces:
            num_bytes += self._file.write(piece)
        assert num_bytes == info.num_bytes, f"{info.name}: {num_bytes:,} bytes of {info.num_bytes:,}"
        self._file.write(bytes(_padding(num_bytes)))


def _header(architecture: str, tensors: Sequence[TensorInfo]) -> bytes:
    parts = [
        _MAGIC,
        struct.pack("<IQQ", _VERSION, len(tensors), 1),
        _text("general.architecture"),
        struct.pack("<I", _TEXT),
        _text(architecture),
    ]
    offset = 0
    for info in tensors:
        parts += [_text(info.name), struct.pack("<I", len(info.shape))]
        parts.append(struct.pack(f"<{len(info.shape)}Q", *reversed(info.shape)))
        parts.append(struct.pack("<IQ", FORMATS[info.format].ggml_id, offset))
        offset += info.num_bytes + _padding(info.num_bytes)
    header = b"".join(parts)
    return header + bytes(_padding(len(header)))


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _padding(num_bytes: int) -> int:
    return -num_bytes % _ALIGNMENT
