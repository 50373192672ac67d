"""GGUF files, byte by byte: small valid ones, and every part of them open to be spoiled."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

F32 = 0
U32, STRING, ARRAY = 4, 8, 9


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def text(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return u64(len(value)) + value


def typed(value: Any) -> bytes:
    """A value with its type before it; `bytes` are taken as they are."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return u32(7) + bytes([value])
    if isinstance(value, int):
        return u32(U32) + u32(value)
    if isinstance(value, float):
        return u32(6) + struct.pack("<f", value)
    if isinstance(value, str):
        return u32(STRING) + text(value)
    if isinstance(value, list) and isinstance(value[0], str):
        return u32(ARRAY) + u32(STRING) + u64(len(value)) + b"".join(map(text, value))
    if isinstance(value[0], bool):
        return u32(ARRAY) + u32(7) + u64(len(value)) + bytes(value)
    return u32(ARRAY) + u32(5) + u64(len(value)) + struct.pack(f"<{len(value)}i", *value)


@dataclass(frozen=True)
class Entry:
    """A tensor in the list; `shape` is in PyTorch's order. Without an offset it follows the one before."""

    name: str | bytes
    shape: tuple[int, ...]
    format: int = F32
    data: bytes | None = None
    offset: int | None = None


def gguf_bytes(
    metadata: Mapping[str, Any] | Sequence[tuple[str | bytes, Any]] = (),
    tensors: Sequence[Entry] = (),
    *,
    magic: bytes = b"GGUF",
    version: bytes = u32(3),
    num_tensors: int | None = None,
    num_keys: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A file with these keys and float32 tensors full of zeros (or of an entry's `data`)."""
    pairs = list(metadata.items()) if isinstance(metadata, Mapping) else list(metadata)
    header = magic + version
    header += u64(len(tensors) if num_tensors is None else num_tensors)
    header += u64(len(pairs) if num_keys is None else num_keys)
    for key, value in pairs:
        header += text(key) + typed(value)
    body = b""
    for tensor in tensors:
        offset = len(body) if tensor.offset is None else tensor.offset
        header += text(tensor.name) + u32(len(tensor.shape))
        header += b"".join(map(u64, reversed(tensor.shape))) + u32(tensor.format) + u64(offset)
        data = bytes(4 * product(tensor.shape)) if tensor.data is None else tensor.data
        body += data + bytes(-len(data) % alignment)
    return header + bytes(-len(header) % alignment) + body


def product(shape: Sequence[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


LLAMA = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 128,
    "llama.embedding_length": 8,
    "llama.feed_forward_length": 16,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 500000.0,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["a", "b", "é", "<|im_end|>"],
    "tokenizer.ggml.token_type": [1, 1, 1, 3],
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 1,
}
LLAMA_TENSORS = (
    Entry("token_embd.weight", (4, 8)),
    Entry("output_norm.weight", (8,)),
    Entry("blk.0.attn_norm.weight", (8,)),
    Entry("blk.0.attn_q.weight", (8, 8)),
    Entry("blk.0.attn_k.weight", (4, 8)),
    Entry("blk.0.attn_v.weight", (4, 8)),
    Entry("blk.0.attn_output.weight", (8, 8)),
    Entry("blk.0.ffn_norm.weight", (8,)),
    Entry("blk.0.ffn_gate.weight", (16, 8)),
    Entry("blk.0.ffn_up.weight", (16, 8)),
    Entry("blk.0.ffn_down.weight", (8, 16)),
)


def write_llama(path: Path, changes: Mapping[str, Any] | None = None, tensors: Sequence[Entry] = LLAMA_TENSORS) -> Path:
    """A whole tiny model in a file; a key that `changes` sets to None is left out."""
    merged = {**LLAMA, **(changes or {})}
    path.write_bytes(gguf_bytes({key: value for key, value in merged.items() if value is not None}, tensors))
    return path
