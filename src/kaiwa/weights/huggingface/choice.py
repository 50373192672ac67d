"""Which files of a repository make a model: everything that is needed, and nothing that is there twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from kaiwa.errors import ModelNotFound, UnsupportedModel, did_you_mean
from kaiwa.weights import gguf_files
from kaiwa.weights.huggingface.hub_name import HubName
from kaiwa.weights.safetensors import INDEX, SINGLE

_DESCRIPTIONS = (
    *("config.json", "generation_config.json", "chat_template.jinja", "chat_template.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.model", "vocab.json", "merges.txt", "vocab.txt"),
)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_PART = re.compile(r"-\d{5}-of-(?P<count>\d{5})$")
_QUANTIZATION = re.compile(
    r"(?:^|[-._])(?P<name>(?:UD[-_])?(?:I?Q\d|TQ\d|MXFP\d|BF16|F16|FP16|F32|FP32)(?:_[A-Z0-9]+)*)$", re.IGNORECASE
)
# What a person gets who does not choose: about 4.5 bits per weight, then the nearest on either side.
_PREFERRED = (
    *("Q4_K_M", "MXFP4", "Q4_K_S", "Q4_0", "Q4_1", "IQ4_NL", "IQ4_XS", "Q5_K_M", "Q5_K_S", "Q5_0", "Q5_1"),
    *("Q8_0", "Q6_K", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "BF16", "F16", "F32"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The `files` to have, and the one to open (`entry`): a GGUF file, or "" for the folder."""

    files: tuple[str, ...]
    entry: str = ""
    quantization: str = ""
    others: tuple[str, ...] = ()
    """Quantizations that could have been taken instead, where nobody chose."""

    @property
    def num_parts(self) -> int:
        """How many parts the file to open says that it has."""
        part = _PART.search(PurePosixPath(self.entry).stem)
        return int(part["count"]) if part else 1


def choose(files: Iterable[str], name: HubName) -> Choice:
    """What `name` means among the repository's `files`.

    Raises `ModelNotFound` where the file or quantization is not there or the repository holds no model,
    `UnsupportedModel` where it holds only what Kaiwa does not read.
    """
    listed = sorted(files)
    if name.file:
        return _of_file(listed, name)
    models = _gguf_models(listed)
    if name.quantization:
        return _of_quantization(models, name)
    if "config.json" in listed and (SINGLE in listed or INDEX in listed):
        weights = {SINGLE} if SINGLE in listed else {INDEX, *filter(_SHARD.fullmatch, listed)}
        return Choice(tuple(file for file in listed if file in _DESCRIPTIONS or file in weights))
    if models:
        return _default(models)
    raise _no_model(listed, name)


def quantization_of(file: str) -> str:
    """What a GGUF file's name says of its numbers, "" where it says nothing: "Q4_K_M" of "model-q4_k_m.gguf"."""
    stem = _PART.sub("", PurePosixPath(file).stem)
    found = _QUANTIZATION.search(stem)
    return found["name"].upper().replace("FP16", "F16").replace("FP32", "F32") if found else ""


def _gguf_models(listed: list[str]) -> dict[str, tuple[str, ...]]:
    """GGUF models by their first file, each with all its parts."""
    models: dict[str, list[str]] = {}
    for file in listed:
        path = PurePosixPath(file)
        if gguf_files.is_model(file):
            models.setdefault(str(path.with_name(_PART.sub("", path.stem))), []).append(file)
    return {parts[0]: tuple(parts) for parts in models.values()}


def _of_file(listed: list[str], name: HubName) -> Choice:
    if name.file not in listed:
        near = did_you_mean(name.file, [file for file in listed if file.endswith(".gguf")] or listed)
        raise ModelNotFound(f"{name.repo} has no file {name.file!r}", hint=near)
    for first, parts in _gguf_models(listed).items():
        if name.file in parts:
            return Choice(parts, first, quantization_of(first))
    return Choice((name.file,), name.file)


def _of_quantization(models: dict[str, tuple[str, ...]], name: HubName) -> Choice:
    by_name = _by_quantization(models)
    wanted = name.quantization.upper()
    if not by_name:
        raise ModelNotFound(
            f"{name.repo} has no GGUF files, so there is no {name.quantization} to choose",
            hint=f"leave :{name.quantization} out; quantization='int4' rounds unquantized weights as they load",
        )
    if wanted not in by_name:
        raise ModelNotFound(f"{name.repo} has no {name.quantization}", hint=did_you_mean(wanted, by_name))
    return Choice(models[by_name[wanted]], by_name[wanted], wanted)


def _default(models: dict[str, tuple[str, ...]]) -> Choice:
    by_name = _by_quantization(models)
    chosen = next((quantization for quantization in _PREFERRED if quantization in by_name), None)
    first = by_name[chosen] if chosen else next(iter(models))
    quantization = quantization_of(first)
    others = tuple(sorted(other for other in by_name if other != quantization))
    return Choice(models[first], first, quantization, others)


def _by_quantization(models: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The first file of each quantization; of several, the one with the shortest name."""
    shortest: dict[str, str] = {}
    for first in sorted(models, key=lambda file: (len(file), file)):
        if quantization := quantization_of(first):
            shortest.setdefault(quantization, first)
    return shortest


def _no_model(listed: list[str], name: HubName) -> ModelNotFound | UnsupportedModel:
    def has(test: Callable[[str], bool]) -> bool:
        return any(test(file) for file in listed)

    if has(lambda file: file == "adapter_config.json"):
        return UnsupportedModel(
            f"{name.repo} is an adapter (LoRA), which changes another model and is none by itself",
            hint="merge it into its base model first, with peft's merge_and_unload()",
        )
    if has(lambda file: file.endswith(_PICKLES)):
        return UnsupportedModel(
            f"{name.repo} has its weights as PyTorch pickles only, which can run any code when they are read",
            hint="look for the same model as safetensors or GGUF, or convert it with transformers' save_pretrained()",
        )
    return ModelNotFound(
        f"{name.repo} holds no language model that Kaiwa could read: no config.json with {SINGLE}, and no .gguf file",
        hint=f"it holds {', '.join(listed[:8]) or 'nothing'}",
    )
