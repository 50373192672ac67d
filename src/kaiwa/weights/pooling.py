"""How a model makes one vector of a text's tokens, as its files say.

Sources: `1_Pooling/config.json` of sentence-transformers, and `pooling_type` in GGUF files, with llama.cpp's numbers.
"""

from __future__ import annotations

from kaiwa.weights import safetensors
from kaiwa.weights.checkpoint import Checkpoint

_OF_NUMBER = {0: None, 1: "mean", 2: "cls", 3: "last", 4: "rank"}
_OF_MODE = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
_OTHER_NAMES = {"lasttoken": "last"}


def declared_pooling(checkpoint: Checkpoint) -> str | None:
    """The way, "mean", "last" or the name of another; None where the files say nothing, as those of chat models do.

    Raises `UnusableFile` where what they say cannot be read.
    """
    if checkpoint.kind == "GGUF":
        number = checkpoint.metadata.get(f"{checkpoint.metadata.get('general.architecture')}.pooling_type")
        return _OF_NUMBER.get(number, f"number {number}") if isinstance(number, int) else None
    path = checkpoint.path / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    config = safetensors.read_json(path, "pooling configuration")
    if isinstance(mode := config.get("pooling_mode"), str):
        return _OTHER_NAMES.get(mode, mode)
    modes = [name for key, name in _OF_MODE.items() if config.get(key) is True]
    return " and ".join(modes) if modes else None
