"""Models that `kw.LLM` does not hold itself: on another server, or in llama.cpp. They have the same calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    from kaiwa.weights import gguf_files, hub

    check_threads(options.get("threads"))
    path = hub.resolve(named, on_progress=options.get("on_progress"))
    is_checkpoint = path.is_dir() and (path / "config.json").exists()
    file = path if is_checkpoint else gguf_files.find(path) or path
    if not engine_choice.wants_llama_cpp(file, engine):
        return None
    from kaiwa.engines.llama_cpp import LlamaCppModel
    from kaiwa.runtime import loading

    loading.admit(file.stat().st_size)
    chosen = {name: value for name, value in options.items() if value is not None}
    rest = {name: value for name, value in chosen.items() if name not in ("engine", "model", "max_waiting")}
    return LlamaCppModel(file, name=hub.display_name(named, path), **rest)
