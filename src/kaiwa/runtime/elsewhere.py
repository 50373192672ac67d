"""Models that `kw.LLM` does not hold itself: on another server, or in llama.cpp. They have the same calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaiwa.chat.address import is_address
from kaiwa.runtime.parts import check_threads
from kaiwa.weights.hub import DEFAULT_MODEL


def find(model: object, options: Mapping[str, Any]) -> Any:
    """The model, or None for one that `kw.LLM` holds. `options` are the keyword arguments of `kw.LLM`.

    Raises what `kw.LLM` says.
    """
    if is_address(model):
        from kaiwa.chat.remote import RemoteModel  # slow to import

        return RemoteModel(str(model), **options)
    engine = options.get("engine", "auto")
    named = options.get("model", DEFAULT_MODEL) if model is None else model
    if engine not in ("auto", "llama-cpp") or not isinstance(named, str | os.PathLike):
        return None
    if engine == "auto" and named == DEFAULT_MODEL:
        return None
    from kaiwa.runtime import engine_choice
    from kaiwa.weights import hub

    check_threads(options.get("threads"))
    path = hub.resolve(named, on_progress=options.get("on_progress"))
    file = _gguf_file(path)
    if not engine_choice.wants_llama_cpp(file, engine):
        return None
    from kaiwa.engines.llama_cpp import LlamaCppModel

    rest = {name: value for name, value in options.items() if name not in ("engine", "model", "max_waiting")}
    return LlamaCppModel(file, name=hub.display_name(named, path), **rest)


def _gguf_file(path: Path) -> Path:
    """The GGUF file in a folder that has one, or the path as it is."""
    files = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").exists() else []
    return files[0] if files else path
