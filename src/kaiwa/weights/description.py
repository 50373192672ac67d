"""What a model on disk is, told from its headers: for lists, and for choosing an engine. No weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from kaiwa.errors import KaiwaError, UnsupportedFormat, UnsupportedModel
from kaiwa.weights import gguf, gguf_files, safetensors
from kaiwa.weights.huggingface import choice
from kaiwa.weights.open import open_checkpoint

_CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class Description:
    """A model's kind, sizes and numbers; 0 or "" where its files do not say.

    `problem` is why the built-in engine cannot read it, or "".
    """

    kind: Literal["GGUF", "safetensors"]
    family: str
    number_format: str = ""
    context_length: int = 0
    num_parameters: int = 0
    problem: str = ""


def describe(path: Path) -> Description:
    """What the model at `path` is. Raises what `open_checkpoint` raises, but for families and formats unknown to us."""
    try:
        with closing(open_checkpoint(path)) as checkpoint:
            return Description(
                kind=checkpoint.kind,
                family=str(checkpoint.config["model_type"]),
                number_format=checkpoint.main_format,
                context_length=int(checkpoint.config["max_position_embeddings"]),
                num_parameters=sum(prod(tensor.shape) for tensor in checkpoint.tensors.values()),
            )
    except (UnsupportedModel, UnsupportedFormat) as error:
        return _of_headers(path, str(error))


def _of_headers(path: Path, problem: str) -> Description:
    """What the files say of themselves where Kaiwa does not know their family or their numbers."""
    if path.is_dir() and (path / _CONFIG).exists():
        config = safetensors.read_json(path / _CONFIG, _CONFIG)
        text = config.get("text_config")
        inner: Mapping[str, Any] = text if isinstance(text, dict) else config
        family = str(inner.get("model_type") or config.get("model_type") or "")
        length = inner.get("max_position_embeddings")
        dtype = inner.get("dtype") or inner.get("torch_dtype") or config.get("torch_dtype") or ""
        return Description("safetensors", family, str(dtype), length if isinstance(length, int) else 0, 0, problem)
    file = gguf_files.find(path) or path
    number_format = choice.quantization_of(file.name)
    try:
        metadata = gguf.read_metadata(file)
    except KaiwaError:
        return Description("GGUF", "", number_format, 0, 0, problem)
    family = str(metadata.get("general.architecture", ""))
    length = metadata.get(f"{family}.context_length", 0)
    return Description("GGUF", family, number_format, length if isinstance(length, int) else 0, 0, problem)
