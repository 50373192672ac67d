"""Open a model, whatever files it came in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kaiwa.errors import ModelNotFound, UnusableFile
from kaiwa.weights import file_kinds, gguf, gguf_files, names, quantized, safetensors
from kaiwa.weights.checkpoint import Checkpoint, Tensor
from kaiwa.weights.config import check_token_ids, normalize_config
from kaiwa.weights.quantized import QuantizedTensor

_CONFIG = "config.json"
_GENERATION_CONFIG = "generation_config.json"
_TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
# Where models that also see or hear keep the part that reads text, before and since transformers 5.
_TEXT_PREFIXES = {"language_model.": "", "model.language_model.": "model."}
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_EXPECTED = "a model is a .gguf file, or a folder with config.json and model.safetensors"


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Open a `.gguf` file (any part of a split one), or a folder with one, or with `config.json` and safetensors.

    The weights stay in their files, mapped into memory, until `Checkpoint.close`.

    Raises `ModelNotFound` where no model is there, `UnusableFile` (`UnsupportedFormat`) where a file is broken or of
    a kind that Kaiwa does not read, `UnsupportedModel` for a family that Kaiwa does not know.
    """
    path = Path(path)
    if not file_kinds.exists(path):
        raise ModelNotFound(f"there is no file or folder {path}", hint=_EXPECTED)
    if path.is_dir():
        return _open_folder(path)
    if path.suffix == ".safetensors" or path.name in (_CONFIG, safetensors.INDEX):
        return _open_folder(path.parent)
    if path.suffix in _PICKLES:
        raise _pickle_error(path)
    return _open_gguf(path)


def _open_folder(folder: Path) -> Checkpoint:
    if (folder / safetensors.SINGLE).exists() or (folder / safetensors.INDEX).exists():
        return _open_safetensors(folder)
    try:
        found = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise UnusableFile(folder, "model", f"the folder cannot be read: {error.strerror}") from error
    models = gguf_files.first_parts(found)
    if len(models) == 1:
        return _open_gguf(folder / models[0])
    if models:
        raise ModelNotFound(f"{folder} holds {len(models)} models: {_listed(models)}", hint="pass the path of one")
    if pickles := [name for name in found if name.endswith(_PICKLES)]:
        raise _pickle_error(folder / pickles[0])
    raise ModelNotFound(f"{folder} holds no model; it holds {_listed(found) or 'nothing'}", hint=_EXPECTED)


def _listed(file_names: list[str], most: int = 5) -> str:
    more = f" and {len(file_names) - most} more" if len(file_names) > most else ""
    return ", ".join(file_names[:most]) + more


def _pickle_error(path: Path) -> UnusableFile:
    return UnusableFile(
        path,
        "model",
        "it is a PyTorch pickle, which can run any code when it is read",
        hint="convert it to safetensors: load it with transformers and call save_pretrained()",
    )


def _open_gguf(path: Path) -> Checkpoint:
    with ExitStack() as opened:
        file = gguf.read(path)
        opened.callback(file.close)
        _, family = names.family_of(file.metadata, path=path)
        originals = {names.tensor_name(family, name, path=path): tensor for name, tensor in file.tensors.items()}
        tensors = {name: replace(tensor, name=name) for name, tensor in originals.items()}
        config = names.config_of(file.metadata, tensors, path=path)
        return Checkpoint(
            path=path,
            kind="GGUF",
            config=config,
            generation_config=names.generation_config_of(file.metadata, path=path),
            tensors=tensors,
            files=file.paths,
            metadata=file.metadata,
            release=lambda tensor: file.release(originals[tensor.name]),
            check=file.check,
            close=opened.pop_all().close,
        )


def _open_safetensors(folder: Path) -> Checkpoint:
    if not (folder / _CONFIG).exists():
        raise UnusableFile(
            folder,
            "model",
            f"it has weights, and no {_CONFIG} that describes them",
            hint=f"download {_CONFIG} of the same model into the folder",
        )
    config = normalize_config(safetensors.read_json(folder / _CONFIG, _CONFIG), path=folder / _CONFIG)
    generation = folder / _GENERATION_CONFIG
    generation_config = {key: config[key] for key in _TOKEN_IDS if key in config}
    if generation.exists():
        generation_config |= safetensors.read_json(generation, _GENERATION_CONFIG)
    check_token_ids(generation_config, path=folder, kind="model")
    settings = config.get("quantization_config")
    if settings is not None and not isinstance(settings, dict):
        raise UnusableFile(folder / _CONFIG, _CONFIG, f"quantization_config is {settings!r}; it must be an object")
    with ExitStack() as opened:
        files = safetensors.read(folder, also=quantized.PART_FORMATS if settings else frozenset())
        opened.callback(files.close)
        weights = quantized.combine(files.tensors, settings, path=folder) if settings else files.tensors
        originals = _text_tensors(weights)

        def release(tensor: Tensor) -> None:
            original = originals[tensor.name]
            parts = original.parts.values() if isinstance(original, QuantizedTensor) else [original]
            for part in parts:
                files.release(part)

        return Checkpoint(
            path=folder,
            kind="safetensors",
            config=config,
            generation_config=generation_config,
            tensors={name: replace(tensor, name=name) for name, tensor in originals.items()},
            files=files.paths,
            release=release,
            check=files.check,
            close=opened.pop_all().close,
        )


def _text_tensors(tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The language model's tensors, by the names that they have in a model without a vision or sound part."""
    if not any(name.startswith(tuple(_TEXT_PREFIXES)) for name in tensors):
        return tensors
    renamed = {name: tensor for name, tensor in tensors.items() if name.startswith("lm_head.")}
    for name, tensor in tensors.items():
        for prefix, bare in _TEXT_PREFIXES.items():
            if name.startswith(prefix):
                renamed[bare + name.removeprefix(prefix)] = tensor
    return renamed
