"""A model's configuration, in the words of `config.json`, brought to one form and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from kaiwa.errors import UnsupportedModel, UnusableFile

# What each family's configuration means where it leaves something out: the defaults of transformers.
# A family that Kaiwa learns gets its row here.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048, "attention_bias": False, "mlp_bias": False},
    "mistral": {"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096},
    "qwen3_5_text": {
        "max_position_embeddings": 32768,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "partial_rotary_factor": 0.25,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "norm_offset": 1.0,
    },
    "qwen2": {"max_position_embeddings": 32768, "use_sliding_window": False},
}
_COMMON_DEFAULTS = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False, "hidden_act": "silu", "sliding_window": None}
_DEFAULT_ROPE_THETA = 10000.0
_MAX_SIZE = 2**31 - 1


def families() -> list[str]:
    """The values of `model_type` that are known."""
    return sorted(_DEFAULTS)


def normalize_config(
    config: Mapping[str, Any],
    *,
    path: object = "config.json",
    kind: str = "config.json",
    name_of: Callable[[str], str] = str,
) -> dict[str, Any]:
    """`config` with everything an engine reads filled in and checked; keys beyond those pass through.

    Whatever form the file used, the result has `rope_theta` as well as `rope_parameters` (a dictionary that always
    has `rope_type` and `rope_theta`), `head_dim`, `num_key_value_heads`, and a `sliding_window` that is None where it
    is not in use. `path`, `kind` and `name_of` (a key's name in the file) are for errors.

    Raises `UnusableFile` that names the key which is missing or impossible, `UnsupportedModel` for an unknown
    `model_type`.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in _DEFAULTS:
        raise UnsupportedModel(
            f"{path} is a model of the family {family!r}; the built-in engine knows {', '.join(families())}",
            hint='engine="torch" runs most families',
        )
    given = {key: value for key, value in config.items() if value is not None}
    result = {**config, **_COMMON_DEFAULTS, **_DEFAULTS[family], **given}
    check = _Check(result, path, kind, name_of)
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"):
        check.size(key)
    _fill_heads(result, check)
    check.size("max_position_embeddings")
    check.positive("rms_norm_eps")
    check.truth("tie_word_embeddings")
    _fill_window(result, config, check)
    _fill_recurrent_layers(result, check)
    _fill_rope(result, check)
    return result


def check_token_ids(config: Mapping[str, Any], *, path: object, kind: str) -> None:
    """Raise `UnusableFile` unless `bos_token_id` and `eos_token_id` are null, an id, or a list of ids."""
    check = _Check(config, path, kind, str)
    for key in ("bos_token_id", "eos_token_id"):
        value = config.get(key)
        ids = value if isinstance(value, list) else [value]
        if value is not None and not all(type(id) is int and 0 <= id <= _MAX_SIZE for id in ids):
            check.fail(key, value, "a token's number, or a list of them")


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks of single keys; each raises `UnusableFile` that names the key as the file calls it."""

    config: Mapping[str, Any]
    path: object
    kind: str
    name_of: Callable[[str], str]

    def size(self, key: str) -> int:
        value = self.config.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_SIZE:
            self.fail(key, value, "a whole number above 0")
        return value

    def positive(self, key: str) -> float:
        value = self.config.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            self.fail(key, value, "a number above 0")
        return float(value)

    def truth(self, key: str) -> None:
        if not isinstance(self.config.get(key), bool):
            self.fail(key, self.config.get(key), "true or false")

    def fail(self, key: str, value: object, expected: str) -> NoReturn:
        name = self.name_of(key)
        problem = f"{name} is missing" if value is None else f"{name} is {value!r}"
        raise UnusableFile(self.path, self.kind, f"{problem}; it must be {expected}")


def _fill_heads(config: dict[str, Any], check: _Check) -> None:
    heads = check.size("num_attention_heads")
    if config.get("num_key_value_heads") is None:
        config["num_key_value_heads"] = heads
    if heads % check.size("num_key_value_heads"):
        check.fail("num_key_value_heads", config["num_key_value_heads"], f"a divisor of the {heads} attention heads")
    if config.get("head_dim") is None:
        if config["hidden_size"] % heads:
            check.fail("hidden_size", config["hidden_size"], f"a multiple of the {heads} attention heads")
        config["head_dim"] = config["hidden_size"] // heads
    if check.size("head_dim") % 2:
        check.fail("head_dim", config["head_dim"], "even, as rotary positions turn pairs of numbers")


def _fill_window(config: dict[str, Any], given: Mapping[str, Any], check: _Check) -> None:
    # A window that the file sets to null is off; one that it leaves out has the family's default.
    is_off = "sliding_window" in given and given["sliding_window"] is None
    if is_off or config.get("use_sliding_window") is False:
        config["sliding_window"] = None
    if config["sliding_window"] is not None:
        check.size("sliding_window")


def _fill_recurrent_layers(config: dict[str, Any], check: _Check) -> None:
    """Which layers are recurrent, where a family has some, and their sizes."""
    if "full_attention_interval" not in config:
        return
    sizes = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    for key in ("full_attention_interval", *(f"linear_{size}" for size in sizes)):
        check.size(key)
    if config.get("layer_types") is None:
        interval, num_layers = config["full_attention_interval"], config["num_hidden_layers"]
        config["layer_types"] = [
            "linear_attention" if (layer + 1) % interval else "full_attention" for layer in range(num_layers)
        ]


def _fill_rope(config: dict[str, Any], check: _Check) -> None:
    """One form of what files write as rope_theta with rope_scaling (until transformers 4) or rope_parameters (5)."""
    written = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(written, Mapping):
        check.fail("rope_parameters", written, "an object")
    rope = {key: value for key, value in written.items() if key != "type"}
    rope.setdefault("rope_type", written.get("type", "default"))
    if not isinstance(rope["rope_type"], str):
        check.fail("rope_parameters", written, "an object whose rope_type is text")
    rope["rope_theta"] = rope.get("rope_theta") or config.get("rope_theta") or _DEFAULT_ROPE_THETA
    config["rope_theta"] = rope["rope_theta"]
    config["rope_theta"] = rope["rope_theta"] = check.positive("rope_theta")
    if rope["rope_type"] not in ("default", "longrope") or "factor" in rope:
        factor = rope.get("factor")
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
            check.fail("factor of rope_parameters", factor, "a number above 0")
    config["rope_parameters"] = rope
