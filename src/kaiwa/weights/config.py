"""A model's configuration, in the words of `config.json`, brought to one form and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from kaiwa.errors import UnsupportedModel, UnusableFile

# What each family's configuration means where it leaves something out: the defaults of transformers.
# A family that Kaiwa learns gets its row here.
_GEMMA = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 4096,
    "query_pre_attn_scalar": 256,
    "tie_word_embeddings": True,
    "norm_offset": 1.0,
}
_QWEN_MOE = {
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "max_window_layers": 28,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": False,
}
_QWEN3_5 = {
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
}
_LATENT_ATTENTION = {
    "max_position_embeddings": 4096,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_experts_per_tok": 8,
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma2": {
        **_GEMMA,
        "max_position_embeddings": 8192,
        "sliding_window_pattern": 2,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "gemma3_text": {
        **_GEMMA,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
        "sliding_window_pattern": 6,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
    },
    "gemma4_text": {
        "vocab_size": 262144,
        "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "global_head_dim": 512,
        "num_kv_shared_layers": 0,
        "attention_k_eq_v": False,
        "use_double_wide_mlp": False,
        "enable_moe_block": False,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 131072,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}
        },
        "rope_local_base_freq": 1e4,
    },
    "deepseek_v2": {
        **_LATENT_ATTENTION,
        "topk_method": "greedy",
        "norm_topk_prob": False,
        "n_group": 1,
        "topk_group": 1,
        "num_experts": 64,
        "moe_intermediate_size": 1407,
        "n_shared_experts": 2,
        "first_k_dense_replace": 0,
        "routed_scaling_factor": 1.0,
    },
    "deepseek_v3": {
        **_LATENT_ATTENTION,
        "norm_topk_prob": True,
        "n_group": 8,
        "topk_group": 4,
        "num_experts": 256,
        "moe_intermediate_size": 2048,
        "n_shared_experts": 1,
        "first_k_dense_replace": 3,
        "routed_scaling_factor": 2.5,
    },
    "gpt_oss": {
        "max_position_embeddings": 131072,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "rms_norm_eps": 1e-5,
        "sliding_window": 128,
        "sliding_window_pattern": 2,
        "rope_theta": 150_000.0,
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "num_experts": 128,
        "num_experts_per_tok": 4,
    },
    "llama": {"max_position_embeddings": 2048, "attention_bias": False, "mlp_bias": False},
    "ministral": {"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096},
    "ministral3": {
        "max_position_embeddings": 262144,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    },
    "mistral": {"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {
        "max_position_embeddings": 131072,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e6,
        "num_experts": 8,
        "num_experts_per_tok": 2,
    },
    "phi3": {
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "vocab_size": 32064,
    },
    "qwen2": {"max_position_embeddings": 32768, "use_sliding_window": False, "max_window_layers": 28},
    "qwen2_moe": {
        **_QWEN_MOE,
        "num_key_value_heads": 16,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
    },
    "qwen3": {
        "max_position_embeddings": 32768,
        "head_dim": 128,
        "attention_bias": False,
        "use_sliding_window": False,
        "max_window_layers": 28,
    },
    "qwen3_5_moe_text": {
        **_QWEN3_5,
        "num_key_value_heads": 2,
        "intermediate_size": 512,  # of no layer: all have experts
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
    "qwen3_5_text": {**_QWEN3_5},
    "qwen3_moe": {
        **_QWEN_MOE,
        "num_key_value_heads": 4,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    },
    "smollm3": {
        "max_position_embeddings": 32768,
        "num_key_value_heads": 4,
        "rope_theta": 2e6,
        "no_rope_layer_interval": 4,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "mlp_bias": False,
    },
}
_COMMON_DEFAULTS = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False, "hidden_act": "silu", "sliding_window": None}
# Where null says that something is off, and not that its usual value holds.
_OFF_IF_NULL = ("sliding_window", "attn_logit_softcapping", "final_logit_softcapping")
_DEFAULT_ROPE_THETA = 10000.0
# Numbers that a rope type cannot do without, and those that it may bring.
_ROPE_NUMBERS = {
    "default": (),
    "longrope": (),
    "proportional": (),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
_MORE_ROPE_NUMBERS = ("factor", "attention_factor", "beta_fast", "beta_slow", "original_max_position_embeddings")
_MAX_SIZE = 2**31 - 1
_MAX_LAYERS = 10_000


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
    is not in use; where it is, `layer_types` says of each layer whether it is a "sliding_attention". A family whose
    windowed layers turn by other angles has those as `local_rope_parameters`. Of a model that also sees or hears, it
    is the part that reads text. `path`, `kind` and `name_of` (a key's name in the file) are for errors.

    Raises `UnusableFile` that names the key which is missing or impossible, `UnsupportedModel` for an unknown
    `model_type`.
    """
    config = _text_part(config)
    family = config.get("model_type")
    if not isinstance(family, str) or family not in _DEFAULTS:
        raise UnsupportedModel(
            f"{path} is a model of the family {family!r}; the built-in engine knows {', '.join(families())}",
            hint='engine="torch" runs most families',
        )
    given = {key: value for key, value in config.items() if value is not None or key in _OFF_IF_NULL}
    result = {**config, **_COMMON_DEFAULTS, **_DEFAULTS[family], **given}
    check = _Check(result, path, kind, name_of)
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"):
        check.size(key)
    if result["num_hidden_layers"] > _MAX_LAYERS:
        check.fail("num_hidden_layers", result["num_hidden_layers"], f"at most {_MAX_LAYERS:,}")
    if "kv_lora_rank" in _DEFAULTS[family]:
        _fill_latent_heads(result, check)
    _fill_heads(result, check)
    check.size("max_position_embeddings")
    check.positive("rms_norm_eps")
    check.truth("tie_word_embeddings")
    for key in ("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"):
        if result.get(key) is not None:
            check.positive(key)
    _fill_window(result, check)
    _fill_global_heads(result, check)
    _fill_recurrent_layers(result, check)
    _fill_rope(result, check)
    if "num_experts" in _DEFAULTS[family] or result.get("enable_moe_block"):
        _fill_experts(result, given, check)
    return result


def _text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of the language model in one that also has a vision or sound model."""
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        return config
    shared = ("bos_token_id", "eos_token_id", "pad_token_id", "quantization_config", "tie_word_embeddings")
    return {**{key: config[key] for key in shared if key in config}, **text}


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
        return self.number(key, self.config.get(key))

    def number(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            self.fail(key, value, "a number above 0")
        return float(value)

    def truth(self, key: str) -> None:
        if not isinstance(self.config.get(key), bool):
            self.fail(key, self.config.get(key), "true or false")

    def per_layer(self, key: str, kind: type) -> None:
        value, num_layers = self.config[key], self.config["num_hidden_layers"]
        if not isinstance(value, list) or len(value) != num_layers or not all(isinstance(one, kind) for one in value):
            self.fail(key, value, f"a list with one entry for each of the {num_layers} layers")

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


def _fill_latent_heads(config: dict[str, Any], check: _Check) -> None:
    """Each head has keys and values of its own, made of a latent that all share; a part of its keys turns."""
    check.size("kv_lora_rank")
    config["head_dim"] = check.size("qk_nope_head_dim") + check.size("qk_rope_head_dim")
    config["num_key_value_heads"] = check.size("num_attention_heads")
    if config["qk_rope_head_dim"] % 2:
        check.fail("qk_rope_head_dim", config["qk_rope_head_dim"], "even, as rotary positions turn pairs of numbers")
    if check.size("v_head_dim") > config["head_dim"]:
        check.fail("v_head_dim", config["v_head_dim"], f"at most the {config['head_dim']} numbers of a key")
    if config.get("q_lora_rank") is not None:
        check.size("q_lora_rank")


def _fill_experts(config: dict[str, Any], given: Mapping[str, Any], check: _Check) -> None:
    """One name of what some families' files call `num_local_experts`, `n_routed_experts` or `top_k_experts`."""
    for key in ("num_local_experts", "n_routed_experts"):
        if key in given:
            config["num_experts"] = check.size(key)
    if "top_k_experts" in given:
        config["num_experts_per_tok"] = check.size("top_k_experts")
    num_experts = check.size("num_experts")
    if check.size("num_experts_per_tok") > num_experts:
        check.fail("num_experts_per_tok", config["num_experts_per_tok"], f"at most the {num_experts} experts")
    sizes = ("moe_intermediate_size", "shared_expert_intermediate_size", "decoder_sparse_step", "n_shared_experts")
    for key in (*sizes, "n_group", "topk_group"):
        if key in config:
            check.size(key)
    if "norm_topk_prob" in config:
        check.truth("norm_topk_prob")
    dense = config.get("mlp_only_layers", [])
    if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
        check.fail("mlp_only_layers", dense, "a list of layers' numbers")


def _fill_window(config: dict[str, Any], check: _Check) -> None:
    if config.get("use_sliding_window") is False:
        config["sliding_window"] = None
    num_layers = config["num_hidden_layers"]
    if "no_rope_layer_interval" in config:
        interval = check.size("no_rope_layer_interval")
        regular = [int((layer + 1) % interval != 0) for layer in range(num_layers)]
        config["no_rope_layers"] = config.get("no_rope_layers") or regular
        check.per_layer("no_rope_layers", int)
    if config["sliding_window"] is None:
        return
    check.size("sliding_window")
    if config.get("layer_types") is None:
        has_window = [_has_window(config, layer, check) for layer in range(num_layers)]
        config["layer_types"] = ["sliding_attention" if has else "full_attention" for has in has_window]
    check.per_layer("layer_types", str)


def _has_window(config: Mapping[str, Any], layer: int, check: _Check) -> bool:
    """How transformers decides for a file that lists no layers."""
    if "sliding_window_pattern" in config:
        return (layer + 1) % check.size("sliding_window_pattern") != 0
    if (first := config.get("max_window_layers")) is not None:
        if type(first) is not int:
            check.fail("max_window_layers", first, "a layer's number")
        return layer >= first
    return not config["no_rope_layers"][layer] if "no_rope_layers" in config else True


def _fill_global_heads(config: dict[str, Any], check: _Check) -> None:
    """The heads of the layers without a window, where a family gives them others."""
    if "global_head_dim" not in config:
        return
    num_layers, kinds = config["num_hidden_layers"], config["layer_types"]
    if (listed := config.get("per_layer_config")) is not None:  # as transformers writes it since 5
        shapes = list(listed.values()) if isinstance(listed, Mapping) else []
        if not shapes or not isinstance(shapes[0], Mapping) or any(shape != shapes[0] for shape in shapes):
            check.fail("per_layer_config", listed, "an object with the same entry for each layer without a window")
        if listed.keys() != {str(layer) for layer in range(num_layers) if kinds[layer] == "full_attention"}:
            check.fail("per_layer_config", listed, "about the layers without a window, and no others")
        config["global_head_dim"] = shapes[0].get("head_dim", config["head_dim"])
        config["num_global_key_value_heads"] = shapes[0].get("num_key_value_heads")
    elif not config["attention_k_eq_v"]:
        config["num_global_key_value_heads"] = None
    if config.get("num_global_key_value_heads") is None:
        config["num_global_key_value_heads"] = config["num_key_value_heads"]
    check.size("global_head_dim")
    if config["num_attention_heads"] % check.size("num_global_key_value_heads"):
        check.fail("num_global_key_value_heads", config["num_global_key_value_heads"], "a divisor of the heads")
    shared = config["num_kv_shared_layers"]
    if type(shared) is not int or not 0 <= shared < num_layers:
        check.fail("num_kv_shared_layers", shared, f"a number of layers below {num_layers}")
    if not {*kinds[: num_layers - shared]} >= {*kinds}:
        check.fail("num_kv_shared_layers", shared, "such that each kind of layer has one with keys of its own")


def _fill_recurrent_layers(config: dict[str, Any], check: _Check) -> None:
    """Which layers are recurrent, where a family has some, and their sizes."""
    if "full_attention_interval" not in config:
        return
    sizes = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    for key in ("full_attention_interval", *(f"linear_{size}" for size in sizes)):
        check.size(key)
    if config.get("layer_types") is not None:
        check.per_layer("layer_types", str)
    else:
        interval, num_layers = config["full_attention_interval"], config["num_hidden_layers"]
        config["layer_types"] = [
            "linear_attention" if (layer + 1) % interval else "full_attention" for layer in range(num_layers)
        ]


def _fill_rope(config: dict[str, Any], check: _Check) -> None:
    """One form of what files write as rope_theta with rope_scaling (until transformers 4) or rope_parameters (5)."""
    written = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(written, Mapping):
        check.fail("rope_parameters", written, "an object")
    is_nested = "full_attention" in written or "sliding_attention" in written
    rope = _rope(
        config, (written.get("full_attention") or {}) if is_nested else written, config.get("rope_theta"), check
    )
    config["rope_parameters"], config["rope_theta"] = rope, rope["rope_theta"]
    if "rope_local_base_freq" in config:
        local = (written.get("sliding_attention") or {}) if is_nested else {}
        config["local_rope_parameters"] = _rope(config, local, config["rope_local_base_freq"], check)


def _rope(config: Mapping[str, Any], written: Mapping[str, Any], theta: Any, check: _Check) -> dict[str, Any]:
    """One rope's parameters, complete and checked."""
    rope = {key: value for key, value in written.items() if key != "type" and value is not None}
    rope.setdefault("rope_type", written.get("type", "default"))
    if not isinstance(rope["rope_type"], str):
        check.fail("rope_parameters", written, "an object whose rope_type is text")
    if config["model_type"] == "phi3" and rope["rope_type"] in ("su", "yarn"):  # what Phi-3 was first published with
        rope["rope_type"] = "longrope"
    rope["rope_theta"] = check.number("rope_theta", rope.get("rope_theta") or theta or _DEFAULT_ROPE_THETA)
    if (partial := config.get("partial_rotary_factor")) is not None:
        rope.setdefault("partial_rotary_factor", partial)
    if config.get("rotary_dim") is not None and check.size("rotary_dim") != config["head_dim"]:
        rope["partial_rotary_factor"] = config["rotary_dim"] / config["head_dim"]
    if rope["rope_type"] in ("llama3", "yarn", "longrope"):
        original = config.get("original_max_position_embeddings") or rope.get("original_max_position_embeddings")
        rope["original_max_position_embeddings"] = original or config["max_position_embeddings"]
    present = [key for key in _MORE_ROPE_NUMBERS if key in rope]
    for key in (*_ROPE_NUMBERS.get(rope["rope_type"], ("factor",)), *present):
        check.number(f"{key} of rope_parameters", rope.get(key))
    if "partial_rotary_factor" in rope and check.number("partial_rotary_factor", rope["partial_rotary_factor"]) > 1:
        check.fail("partial_rotary_factor", rope["partial_rotary_factor"], "a number from 0 to 1")
    return rope
