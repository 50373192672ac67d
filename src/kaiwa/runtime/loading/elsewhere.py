"""Models that `kw.LLM` does not hold itself: on another server, or in llama.cpp. They have the same calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kaiwa.chat.address import is_address
from kaiwa.errors import InvalidOption
from kaiwa.runtime.loading.parts import check_threads
from kaiwa.weights.hub import DEFAULT_MODEL

# Options of `kw.LLM` that have a meaning for its own engines only, with the values that ask for nothing.
_OF_OUR_SCHEDULER: Mapping[str, Any] = {"speculation": True, "assistant_model": None, "cache_dir": None}
_OF_THIS_MACHINE: Mapping[str, Any] = {
    **_OF_OUR_SCHEDULER,
    "threads": None,
    "context_length": None,
    "quantization": None,
    "kv_dtype": None,
    "engine": "auto",
    "max_running": None,
}
_UNASKED = ("max_waiting", "on_progress")
"""Options of a queue that is the server's, and of a load that takes no time."""


def find(model: object, options: Mapping[str, Any]) -> Any:
    """The model, or None for one that `kw.LLM` holds. `options` are the keyword arguments of `kw.LLM`.

    Raises what `kw.LLM` says.
    """
    if is_address(model):
        from kaiwa.chat.remote import RemoteModel  # slow to import

        rest = _without(options, _OF_THIS_MACHINE, "a model on another server")
        return RemoteModel(str(model), **{name: value for name, value in rest.items() if name not in _UNASKED})
    engine = options.get("engine", "auto")
    named = options.get("model", DEFAULT_MODEL) if model is None else model
    if engine not in ("auto", "llama-cpp") or not isinstance(named, str | os.PathLike):
        return None
    if engine == "auto" and named == DEFAULT_MODEL:
        return None
    from kaiwa.runtime.loading import engine_choice
    from kaiwa.weights import gguf_files, hub

    check_threads(options.get("threads"))
    path = hub.resolve(named, on_progress=options.get("on_progress"))
    is_checkpoint = path.is_dir() and (path / "config.json").exists()
    file = path if is_checkpoint else gguf_files.find(path) or path
    if not engine_choice.wants_llama_cpp(file, engine):
        return None
    from kaiwa.engines.llama_cpp import LlamaCppModel
    from kaiwa.runtime.loading.budget import admit

    admit(file.stat().st_size)
    rest = _without(options, _OF_OUR_SCHEDULER, "a model on llama.cpp")
    chosen = {name: value for name, value in rest.items() if name not in ("engine", "model", "max_waiting")}
    return LlamaCppModel(file, name=hub.display_name(named, path), **chosen)


def _without(options: Mapping[str, Any], unknown: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The options without `unknown` ones. Raises `InvalidOption` where one of them asks for something."""
    for name, unasked in unknown.items():
        if options.get(name, unasked) != unasked:
            raise InvalidOption(f"{name}={options[name]!r} has no effect on {where}", hint=f"leave {name} out")
    return {name: value for name, value in options.items() if name not in unknown}
