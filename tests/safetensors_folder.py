"""Folders with config.json and safetensors, byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 4,
    "eos_token_id": 2,
}


def safetensors_bytes(header: Any, body: bytes = b"") -> bytes:
    """A file with this header: text, bytes, or something to write as JSON."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + body


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_folder(folder: Path, files: dict[str, bytes], config: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG if config is None else config))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def index_of(weight_map: Any) -> bytes:
    return json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}).encode()
