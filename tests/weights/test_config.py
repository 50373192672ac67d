"""Configurations: every form comes to one, defaults are those of transformers, mistakes are named."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kaiwa.errors import UnsupportedModel, UnusableFile
from kaiwa.weights.config import families, normalize_config

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
LLAMA3_ROPE = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def test_what_a_file_leaves_out_is_filled_in() -> None:
    config = normalize_config(LLAMA)
    assert (config["head_dim"], config["num_key_value_heads"]) == (16, 4)
    assert config["rope_theta"] == 10000.0
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert config["rms_norm_eps"] == 1e-6
    assert config["tie_word_embeddings"] is False
    assert config["sliding_window"] is None


def test_null_means_the_default_and_unknown_keys_pass_through() -> None:
    config = normalize_config({**LLAMA, "head_dim": None, "rope_scaling": None, "pretraining_tp": 1})
    assert config["head_dim"] == 16
    assert config["pretraining_tp"] == 1


@pytest.mark.parametrize(
    "written",
    [
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **LLAMA3_ROPE}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3_ROPE}},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", **LLAMA3_ROPE}},
    ],
)
def test_old_and_new_ways_to_write_rope_are_the_same(written: dict[str, Any]) -> None:
    config = normalize_config({**LLAMA, **written})
    assert config["rope_theta"] == 5e5
    assert config["rope_parameters"] == {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3_ROPE}


def test_what_is_given_is_not_changed_in_place() -> None:
    rope = {"type": "linear", "factor": 2}
    given = {**LLAMA, "rope_scaling": rope}
    normalize_config(given)
    assert given == {**LLAMA, "rope_scaling": {"type": "linear", "factor": 2}}


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"model_type": "qwen2", "sliding_window": 131072, "use_sliding_window": False}, None),
        ({"model_type": "qwen2", "sliding_window": 131072}, None),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, 4096),
        ({"model_type": "mistral", "sliding_window": 4096}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral", "num_attention_heads": 8}, 4096),
    ],
)
def test_a_window_holds_only_where_transformers_uses_it(changes: dict[str, Any], window: int | None) -> None:
    assert normalize_config({**LLAMA, "num_key_value_heads": 4, **changes})["sliding_window"] == window


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
@pytest.mark.parametrize("value", [None, 0, -1, 2.5, "64", True, [64], 2**31])
def test_an_impossible_size_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(UnusableFile, match=f"{key} is .*; it must be a whole number above 0"):
        normalize_config({**LLAMA, key: value})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3; it must be a divisor of the 4 attention heads"),
        ({"hidden_size": 63}, "hidden_size is 63; it must be a multiple of the 4 attention heads"),
        ({"head_dim": 15}, "head_dim is 15; it must be even"),
        ({"rms_norm_eps": 0}, "rms_norm_eps is 0; it must be a number above 0"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"rope_theta": -1}, "rope_theta is -1"),
        ({"rope_theta": "big"}, "rope_theta is 'big'"),
        ({"rope_scaling": "linear"}, "rope_parameters is 'linear'; it must be an object"),
        ({"rope_scaling": {"type": 3}}, "it must be an object whose rope_type is text"),
        ({"rope_scaling": {"type": "linear"}}, "factor of rope_parameters is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor of rope_parameters is 0"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'; it must be true or false"),
        ({"max_position_embeddings": 0}, "max_position_embeddings is 0"),
    ],
)
def test_what_is_impossible_together_is_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableFile) as caught:
        normalize_config({**LLAMA, **changes}, path="/m/config.json")
    assert str(caught.value).startswith("/m/config.json is not a usable config.json file: ")
    assert expected in str(caught.value)


MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_key_value_heads": 2}


def test_experts_have_one_name() -> None:
    """Transformers 5 writes `num_local_experts` for families whose published files say `num_experts`, too."""
    assert normalize_config(MIXTRAL)["num_experts"] == 8
    for key in ("num_experts", "num_local_experts"):
        assert normalize_config({**MIXTRAL, key: 5})["num_experts"] == 5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_local_experts": 0}, "num_local_experts is 0; it must be a whole number above 0"),
        ({"num_experts_per_tok": 9}, "num_experts_per_tok is 9; it must be at most the 8 experts"),
        ({"model_type": "qwen3_moe", "moe_intermediate_size": -1}, "moe_intermediate_size is -1"),
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 0}, "decoder_sparse_step is 0"),
        ({"model_type": "qwen3_moe", "norm_topk_prob": 1}, "norm_topk_prob is 1; it must be true or false"),
        ({"model_type": "deepseek_v2", "v_head_dim": 193}, "v_head_dim is 193; it must be at most the 192 numbers"),
        ({"model_type": "deepseek_v3", "kv_lora_rank": 0}, "kv_lora_rank is 0; it must be a whole number above 0"),
        ({"model_type": "deepseek_v3", "qk_rope_head_dim": 7}, "qk_rope_head_dim is 7; it must be even"),
        ({"model_type": "qwen2_moe", "mlp_only_layers": ["0"]}, "mlp_only_layers is ['0']"),
    ],
)
def test_impossible_experts_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableFile, match=re.escape(expected)):
        normalize_config({**MIXTRAL, **changes})


GEMMA4 = {**LLAMA, "model_type": "gemma4_text", "num_hidden_layers": 6, "num_attention_heads": 8}


def test_gemma4s_large_layers_are_told_in_two_ways() -> None:
    by_layer = {"5": {"head_dim": 128, "num_key_value_heads": 2}}
    for written in (
        {"per_layer_config": by_layer},
        {"global_head_dim": 128, "num_global_key_value_heads": 2, "attention_k_eq_v": True},
    ):
        config = normalize_config({**GEMMA4, **written})
        assert config["layer_types"] == ["sliding_attention"] * 5 + ["full_attention"]
        assert (config["global_head_dim"], config["num_global_key_value_heads"]) == (128, 2)
        assert (config["head_dim"], config["num_key_value_heads"]) == (256, 4)
        assert config["rope_parameters"]["rope_type"] == "proportional"
        assert config["local_rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert normalize_config({**GEMMA4, "num_global_key_value_heads": 2})["num_global_key_value_heads"] == 4


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"per_layer_config": []}, "per_layer_config is []"),
        ({"per_layer_config": {"4": {"head_dim": 128}}}, "it must be about the layers without a window"),
        ({"per_layer_config": {"5": {"head_dim": -1}}}, "global_head_dim is -1"),
        ({"num_global_key_value_heads": 3, "attention_k_eq_v": True}, "num_global_key_value_heads is 3"),
        ({"num_kv_shared_layers": 6}, "num_kv_shared_layers is 6; it must be a number of layers below 6"),
        ({"num_kv_shared_layers": 1}, "each kind of layer has one with keys of its own"),
    ],
)
def test_layers_of_two_shapes_that_cannot_be(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableFile, match=re.escape(expected)):
        normalize_config({**GEMMA4, **changes})


def test_every_fourth_layer_of_qwen35_is_attention() -> None:
    config = normalize_config({**LLAMA, "model_type": "qwen3_5_text", "num_hidden_layers": 8})
    assert config["layer_types"] == (["linear_attention"] * 3 + ["full_attention"]) * 2
    assert config["rope_parameters"]["partial_rotary_factor"] == 0.25
    with pytest.raises(UnusableFile, match="linear_num_key_heads is 0"):
        normalize_config({**LLAMA, "model_type": "qwen3_5_text", "linear_num_key_heads": 0})


@pytest.mark.parametrize("family", ["gpt2", None, 3, ["llama"]])
def test_an_unknown_family_lists_those_which_are_known(family: object) -> None:
    with pytest.raises(UnsupportedModel, match="the built-in engine knows " + ", ".join(families())) as caught:
        normalize_config({**LLAMA, "model_type": family})
    assert {"llama", "mistral", "qwen2"} <= {*families()}
    assert 'engine="torch"' in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"model_type": "gemma2"}, "SFSF"),
        ({"model_type": "gemma2", "layer_types": ["full_attention", *["sliding_attention"] * 3]}, "FSSS"),
        ({"model_type": "gemma3_text", "num_hidden_layers": 7}, "SSSSSFS"),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 2}, "SFSF"),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 3}, "FFFS"),
        ({"model_type": "smollm3", "sliding_window": 8, "use_sliding_window": True}, "FFFS"),
        ({"model_type": "mistral", "sliding_window": 8}, "SSSS"),
    ],
)
def test_which_layers_have_a_window(changes: dict[str, Any], windows: str) -> None:
    config = normalize_config({**LLAMA, "num_hidden_layers": 4, "num_key_value_heads": 4, **changes})
    assert "".join(layer[0].upper() for layer in config["layer_types"]) == windows


def test_null_turns_a_cap_off() -> None:
    gemma = {**LLAMA, "model_type": "gemma2"}
    assert normalize_config(gemma)["attn_logit_softcapping"] == 50.0
    assert normalize_config({**gemma, "attn_logit_softcapping": None})["attn_logit_softcapping"] is None


@pytest.mark.parametrize(
    "written",
    [
        {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        },
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    ],
)
def test_old_and_new_ways_to_write_two_ropes_are_the_same(written: dict[str, Any]) -> None:
    config = normalize_config({**LLAMA, "model_type": "gemma3_text", **written})
    assert config["rope_parameters"] == {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}
    assert config["local_rope_parameters"] == {"rope_type": "default", "rope_theta": 1e4}


@pytest.mark.parametrize("kind", ["su", "yarn", "longrope"])
def test_what_phi3_called_its_rope(kind: str) -> None:
    factors = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    phi3 = {**LLAMA, "model_type": "phi3", "original_max_position_embeddings": 64, "max_position_embeddings": 256}
    rope = normalize_config({**phi3, "rope_scaling": {"type": kind, **factors}})["rope_parameters"]
    assert rope == {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64, **factors
    }  # fmt: skip


def test_of_a_model_that_sees_its_text_is_read() -> None:
    seeing = {"model_type": "gemma3", "eos_token_id": [1, 106], "vision_config": {"hidden_size": 9}}
    text = {**LLAMA, "model_type": "gemma3_text", "num_hidden_layers": 1, "eos_token_id": None}
    config = normalize_config({**seeing, "text_config": text})
    assert config["model_type"] == "gemma3_text"
    assert config["hidden_size"] == 64
    assert "vision_config" not in config


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_hidden_layers": 10_001}, "num_hidden_layers is 10001; it must be at most 10,000"),
        ({"rope_scaling": {"type": "llama3", "factor": 8.0}}, "low_freq_factor of rope_parameters is missing"),
        ({"rope_scaling": {"type": "yarn", "factor": 8.0, "beta_fast": "x"}}, "beta_fast of rope_parameters is 'x'"),
        ({"partial_rotary_factor": 1.5}, "partial_rotary_factor is 1.5; it must be a number from 0 to 1"),
        ({"model_type": "gemma2", "attn_logit_softcapping": 0}, "attn_logit_softcapping is 0"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "a list with one entry for each of the 2 layers"),
        ({"model_type": "smollm3", "no_rope_layer_interval": 0}, "no_rope_layer_interval is 0"),
    ],
)
def test_what_a_family_cannot_be(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableFile) as caught:
        normalize_config({**LLAMA, "num_key_value_heads": 4, **changes})
    assert expected in str(caught.value)
