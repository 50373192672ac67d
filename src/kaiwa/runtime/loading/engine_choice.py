"""Which engine runs a model: ours where it can, another where it must."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from kaiwa.errors import UnsupportedModel
from kaiwa.weights import config, gguf, gguf_families
from kaiwa.weights.description import Description


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine by its name in `kw.LLM(engine=…)`, the package it needs, and Kaiwa's extra that brings it."""

    name: str
    package: str = ""
    extra: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether it can be used now."""
        return not self.package or importlib.util.find_spec(self.package) is not None


NATIVE = EngineChoice("native")
TORCH = EngineChoice("torch", "transformers", "torch")
LLAMA_CPP = EngineChoice("llama-cpp", "xllamacpp", "llama-cpp")


def choose(description: Description) -> EngineChoice:
    """The engine that runs this model where nobody asks for another."""
    if not description.problem:
        return NATIVE
    return TORCH if description.kind == "safetensors" else LLAMA_CPP


def wants_torch(path: Path, engine: str, quantization: str | None) -> bool:
    """Whether the torch engine is to run a model.

    It is where a person says so, where the built-in one does not know a folder's family, and where a GPU is there.

    Raises `UnsupportedModel` where it is needed, and not installed.
    """
    if engine != "auto" or not path.is_dir():
        return engine == TORCH.name
    family = _family_of_folder(path)
    if family is None:
        return False
    if family not in config.families():
        if not TORCH.is_installed:
            raise _not_installed(path, family, TORCH)
        return True
    if quantization is not None or not TORCH.is_installed:
        return False
    from kaiwa.engines.torch.loading import has_gpu

    return has_gpu()


def wants_llama_cpp(path: Path, engine: str) -> bool:
    """Whether llama.cpp is to run a model.

    It is where a person says so, and where the built-in engine does not know the family of a GGUF file.

    Raises `UnsupportedModel` where it is needed, and not installed.
    """
    if engine != "auto" or path.suffix != ".gguf":
        return engine == LLAMA_CPP.name
    family = gguf.peek(path, "general.architecture")
    if not isinstance(family, str) or family in gguf_families.FAMILIES:
        return False
    if not LLAMA_CPP.is_installed:
        raise _not_installed(path, family, LLAMA_CPP)
    return True


def _family_of_folder(path: Path) -> str | None:
    """What `config.json` says; None for what `open_checkpoint` will find better words for."""
    try:
        content = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    text = content.get("text_config") if isinstance(content, dict) else None
    family = (text if isinstance(text, dict) else content).get("model_type") if isinstance(content, dict) else None
    return family if isinstance(family, str) else None


def _not_installed(path: Path, family: str, needed: EngineChoice) -> UnsupportedModel:
    return UnsupportedModel(
        f"{path} is a model of the family {family!r}, which the built-in engine does not know",
        hint=f"pip install 'kaiwa[{needed.extra}]' for the engine {needed.name!r}, which may run it; "
        f"the built-in one knows {', '.join(config.families())}",
    )
