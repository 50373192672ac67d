"""Which engine runs a model: ours where it can, another where it must."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from kaiwa.weights.description import Description


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine by its name in `kw.LLM(engine=…)`, the package it needs, and whether that is installed."""

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
