"""A model on the torch engine, with Kaiwa's own tokenizer and chat template before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaiwa.errors import InvalidOption, OutOfMemory
from kaiwa.runtime.loading.budget import admit, current_budget
from kaiwa.runtime.loading.memory import available_bytes
from kaiwa.runtime.loading.parts import EngineOptions, OnProgress, Parts
from kaiwa.runtime.loading.planning import in_megabytes
from kaiwa.sampling import Sampling
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.tokenizer import Tokenizer

_TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")


def load(
    path: Path,
    options: EngineOptions,
    *,
    name: str,
    recommended: Mapping[str, Any],
    on_progress: OnProgress | None,
    **torch_options: Any,
) -> Parts:
    """Load a folder. `torch_options` are `dtype`, `device_map`, `quantization_config` and `max_memory`.

    Raises what `kw.LLM` says.
    """
    from kaiwa.engines.torch import loading

    if options.kv_dtype is not None:
        raise InvalidOption(
            f"kv_dtype={options.kv_dtype!r} is impossible on the torch engine",
            hint="its cache has the numbers of the weights; leave kv_dtype out",
        )
    _take_place(path, torch_options.get("device_map"))
    engine = loading.load(
        path,
        context_length=options.context_length,
        threads=options.threads,
        quantization=options.quantization,
        on_progress=on_progress,
        **torch_options,
    )
    config = _generation_config(path)
    ends = config.get("eos_token_id")
    tokenizer = Tokenizer.from_folder(path, end_ids=ends if isinstance(ends, list) else [] if ends is None else [ends])
    template = ChatTemplate.of(tokenizer) if tokenizer.chat_template else None
    sampling = Sampling.from_generation_config({**recommended, **config})
    return Parts(name, engine, tokenizer, template, sampling)


def _take_place(path: Path, device: Any) -> None:
    """Have the weights' place in memory, which others may have to leave first.

    Raises `OutOfMemory` where the weights alone are more than there may be. Memory of a GPU is not counted.
    """
    from kaiwa.engines.torch.loading import has_gpu

    if device not in (None, "auto", "cpu") or (device != "cpu" and has_gpu()):
        return
    budget = current_budget()
    most = available_bytes() if budget is None or budget.most_bytes is None else budget.most_bytes
    needed = sum(file.stat().st_size for file in path.glob("*.safetensors"))
    if most is not None and needed > most:
        raise OutOfMemory(
            f"the weights take {in_megabytes(needed)}, and there is room for {in_megabytes(most)}",
            hint="choose a smaller model, or free memory",
        )
    admit(needed)


def _generation_config(path: Path) -> dict[str, Any]:
    """`generation_config.json`, over the token ids of `config.json`."""
    found: dict[str, Any] = {}
    for file in ("config.json", "generation_config.json"):
        try:
            content = json.loads((path / file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # not there, or of a kind that transformers has refused already
        if file == "config.json":
            content = {key: content[key] for key in _TOKEN_IDS if key in content}
        found |= content
    return found
