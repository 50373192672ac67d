"""What GGUF files call things, in Hugging Face's words: configuration keys and tensor names.

One entry of `FAMILIES` per architecture; nothing else here knows a family.
"""

from __future__ import annotations

import array
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kaiwa.errors import UnsupportedModel, UnusableFile
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.config import normalize_config
from kaiwa.weights.gguf_header import KIND


@dataclass(frozen=True, slots=True)
class Family:
    """One GGUF architecture. `{N}` in tensor names is the layer's number."""

    model_type: str
    tensors: Mapping[str, str]
    keys: Mapping[str, str]
    """Keys without the architecture's prefix, and what `config.json` calls them."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """What `config.json` says of every model of this family."""
    derive: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda config: {}
    """What `config.json` says besides, and follows from the rest."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Keys that may have a value for each layer, and what `derive` knows them by."""


_DECODER_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "output.bias": "lm_head.bias",
    "rope_freqs.weight": "rope_freqs.weight",
    "blk.{N}.attn_norm.weight": "model.layers.{N}.input_layernorm.weight",
    "blk.{N}.attn_q.weight": "model.layers.{N}.self_attn.q_proj.weight",
    "blk.{N}.attn_q.bias": "model.layers.{N}.self_attn.q_proj.bias",
    "blk.{N}.attn_k.weight": "model.layers.{N}.self_attn.k_proj.weight",
    "blk.{N}.attn_k.bias": "model.layers.{N}.self_attn.k_proj.bias",
    "blk.{N}.attn_v.weight": "model.layers.{N}.self_attn.v_proj.weight",
    "blk.{N}.attn_v.bias": "model.layers.{N}.self_attn.v_proj.bias",
    "blk.{N}.attn_output.weight": "model.layers.{N}.self_attn.o_proj.weight",
    "blk.{N}.attn_output.bias": "model.layers.{N}.self_attn.o_proj.bias",
    "blk.{N}.attn_rot_embd.weight": "model.layers.{N}.self_attn.rotary_emb.inv_freq",
    "blk.{N}.ffn_norm.weight": "model.layers.{N}.post_attention_layernorm.weight",
    "blk.{N}.ffn_gate.weight": "model.layers.{N}.mlp.gate_proj.weight",
    "blk.{N}.ffn_gate.bias": "model.layers.{N}.mlp.gate_proj.bias",
    "blk.{N}.ffn_up.weight": "model.layers.{N}.mlp.up_proj.weight",
    "blk.{N}.ffn_up.bias": "model.layers.{N}.mlp.up_proj.bias",
    "blk.{N}.ffn_down.weight": "model.layers.{N}.mlp.down_proj.weight",
    "blk.{N}.ffn_down.bias": "model.layers.{N}.mlp.down_proj.bias",
}
_DECODER_KEYS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
    "rope.dimension_count": "rotary_dim",
}

_QK_NORM_TENSORS = {
    "blk.{N}.attn_q_norm.weight": "model.layers.{N}.self_attn.q_norm.weight",
    "blk.{N}.attn_k_norm.weight": "model.layers.{N}.self_attn.k_norm.weight",
}
_GEMMA_TENSORS = {
    **{ours: theirs for ours, theirs in _DECODER_TENSORS.items() if not ours.startswith(("output.", "rope_freqs."))},
    "blk.{N}.post_attention_norm.weight": "model.layers.{N}.post_attention_layernorm.weight",
    "blk.{N}.ffn_norm.weight": "model.layers.{N}.pre_feedforward_layernorm.weight",
    "blk.{N}.post_ffw_norm.weight": "model.layers.{N}.post_feedforward_layernorm.weight",
}
_GEMMA3_TENSORS = {**_GEMMA_TENSORS, **_QK_NORM_TENSORS, "output.weight": "lm_head.weight"}
_GEMMA_KEYS = {
    **_DECODER_KEYS,
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base_swa": "rope_local_base_freq",
}
# Its writers store 1 + w, which a Hugging Face checkpoint leaves to the engine.
_GEMMA_CONSTANTS = {"norm_offset": 0.0}
_PHI3_TENSORS = {
    **{ours: theirs for ours, theirs in _DECODER_TENSORS.items() if "ffn_gate" not in ours},
    "rope_factors_long.weight": "rope_factors_long.weight",
    "rope_factors_short.weight": "rope_factors_short.weight",
    "blk.{N}.attn_qkv.weight": "model.layers.{N}.self_attn.qkv_proj.weight",
    "blk.{N}.ffn_up.weight": "model.layers.{N}.mlp.gate_up_proj.weight",
}
_EXPERT_TENSORS = {
    "blk.{N}.ffn_gate_inp.weight": "model.layers.{N}.mlp.gate.weight",
    "blk.{N}.ffn_gate_exps.weight": "model.layers.{N}.mlp.experts.gate_proj.weight",
    "blk.{N}.ffn_up_exps.weight": "model.layers.{N}.mlp.experts.up_proj.weight",
    "blk.{N}.ffn_down_exps.weight": "model.layers.{N}.mlp.experts.down_proj.weight",
}
_SHARED_EXPERT_TENSORS = {
    "blk.{N}.ffn_gate_inp_shexp.weight": "model.layers.{N}.mlp.shared_expert_gate.weight",
    "blk.{N}.ffn_gate_shexp.weight": "model.layers.{N}.mlp.shared_expert.gate_proj.weight",
    "blk.{N}.ffn_up_shexp.weight": "model.layers.{N}.mlp.shared_expert.up_proj.weight",
    "blk.{N}.ffn_down_shexp.weight": "model.layers.{N}.mlp.shared_expert.down_proj.weight",
}
_MIXTRAL_TENSORS = {
    **_DECODER_TENSORS,
    "blk.{N}.ffn_gate_inp.weight": "model.layers.{N}.block_sparse_moe.gate.weight",
    "blk.{N}.ffn_gate_exps.weight": "model.layers.{N}.block_sparse_moe.experts.w1.weight",
    "blk.{N}.ffn_down_exps.weight": "model.layers.{N}.block_sparse_moe.experts.w2.weight",
    "blk.{N}.ffn_up_exps.weight": "model.layers.{N}.block_sparse_moe.experts.w3.weight",
}
_QWEN_MOE_TENSORS = {
    **{ours: theirs for ours, theirs in _DECODER_TENSORS.items() if ".mlp." not in theirs},
    **_EXPERT_TENSORS,
}
_GPT_OSS_TENSORS = {
    **_QWEN_MOE_TENSORS,
    "blk.{N}.post_attention_norm.weight": "model.layers.{N}.post_attention_layernorm.weight",
    "blk.{N}.attn_sinks.weight": "model.layers.{N}.self_attn.sinks",
    "blk.{N}.ffn_gate_inp.weight": "model.layers.{N}.mlp.router.weight",
    "blk.{N}.ffn_gate_inp.bias": "model.layers.{N}.mlp.router.bias",
    "blk.{N}.ffn_gate_exps.bias": "model.layers.{N}.mlp.experts.gate_proj.bias",
    "blk.{N}.ffn_up_exps.bias": "model.layers.{N}.mlp.experts.up_proj.bias",
    "blk.{N}.ffn_down_exps.bias": "model.layers.{N}.mlp.experts.down_proj.bias",
}
del _GPT_OSS_TENSORS["blk.{N}.ffn_norm.weight"]
_EXPERT_KEYS = {
    **_DECODER_KEYS,
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}

_PHI3_KEYS = {**_DECODER_KEYS, "rope.scaling.original_context_length": "original_max_position_embeddings"}


def _gemma_scale(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What queries are scaled by, which no key says; the 27B models, known by their layers, do it their own way."""
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if config.get("num_hidden_layers") in (46, 62) and isinstance(hidden, int) and isinstance(heads, int) and heads:
        return {"query_pre_attn_scalar": hidden // heads}
    return {"query_pre_attn_scalar": config.get("head_dim")}


def _gemma3(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_gemma_scale(config), "sliding_window": config.get("sliding_window")}


_DEEPSEEK2_TENSORS = {
    **_DECODER_TENSORS,
    **_EXPERT_TENSORS,
    "blk.{N}.exp_probs_b.bias": "model.layers.{N}.mlp.gate.e_score_correction_bias",
    "blk.{N}.attn_q_a.weight": "model.layers.{N}.self_attn.q_a_proj.weight",
    "blk.{N}.attn_q_a_norm.weight": "model.layers.{N}.self_attn.q_a_layernorm.weight",
    "blk.{N}.attn_q_b.weight": "model.layers.{N}.self_attn.q_b_proj.weight",
    "blk.{N}.attn_kv_a_mqa.weight": "model.layers.{N}.self_attn.kv_a_proj_with_mqa.weight",
    "blk.{N}.attn_kv_a_norm.weight": "model.layers.{N}.self_attn.kv_a_layernorm.weight",
    "blk.{N}.attn_kv_b.weight": "model.layers.{N}.self_attn.kv_b_proj.weight",
    # What newer files have in its place: a matrix for each head, those of keys with rows for columns.
    "blk.{N}.attn_k_b.weight": "model.layers.{N}.self_attn.k_b_proj.weight",
    "blk.{N}.attn_v_b.weight": "model.layers.{N}.self_attn.v_b_proj.weight",
    "blk.{N}.ffn_gate_shexp.weight": "model.layers.{N}.mlp.shared_experts.gate_proj.weight",
    "blk.{N}.ffn_up_shexp.weight": "model.layers.{N}.mlp.shared_experts.up_proj.weight",
    "blk.{N}.ffn_down_shexp.weight": "model.layers.{N}.mlp.shared_experts.down_proj.weight",
}
# Without the sizes of heads, which newer files give as those of the latent; what is turned of a head has its own key.
_DEEPSEEK2_KEYS = {
    **{
        ours: theirs
        for ours, theirs in _EXPERT_KEYS.items()
        if ours not in ("attention.head_count_kv", "rope.dimension_count", "expert_shared_feed_forward_length")
    },
    "attention.key_length": "key_length",
    "attention.value_length": "v_head_dim",
    "attention.key_length_mla": "key_length_of_heads",
    "attention.value_length_mla": "value_length_of_heads",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
}

_GEMMA4_TENSORS = {
    **_GEMMA_TENSORS,
    **_QK_NORM_TENSORS,
    "output.weight": "lm_head.weight",
    "rope_freqs.weight": "rope_freqs.weight",
    "per_layer_token_embd.weight": "model.embed_tokens_per_layer.weight",
    "per_layer_model_proj.weight": "model.per_layer_model_projection.weight",
    "per_layer_proj_norm.weight": "model.per_layer_projection_norm.weight",
    "blk.{N}.inp_gate.weight": "model.layers.{N}.per_layer_input_gate.weight",
    "blk.{N}.proj.weight": "model.layers.{N}.per_layer_projection.weight",
    "blk.{N}.post_norm.weight": "model.layers.{N}.post_per_layer_input_norm.weight",
    "blk.{N}.layer_output_scale.weight": "model.layers.{N}.layer_scalar",
    "blk.{N}.ffn_gate_inp.weight": "model.layers.{N}.router.proj.weight",
    "blk.{N}.ffn_gate_inp.scale": "model.layers.{N}.router.scale",
    "blk.{N}.ffn_gate_up_exps.weight": "model.layers.{N}.experts.gate_up_proj",
    "blk.{N}.ffn_down_exps.weight": "model.layers.{N}.experts.down_proj.weight",
    "blk.{N}.ffn_down_exps.scale": "model.layers.{N}.router.per_expert_scale",
    "blk.{N}.pre_ffw_norm_2.weight": "model.layers.{N}.pre_feedforward_layernorm_2.weight",
    "blk.{N}.post_ffw_norm_1.weight": "model.layers.{N}.post_feedforward_layernorm_1.weight",
    "blk.{N}.post_ffw_norm_2.weight": "model.layers.{N}.post_feedforward_layernorm_2.weight",
}
# Without what differs from layer to layer; the turns of large heads are in rope_freqs.weight.
_GEMMA4_KEYS = {
    **{
        ours: theirs
        for ours, theirs in _GEMMA_KEYS.items()
        if ours not in ("attention.head_count_kv", "feed_forward_length", "rope.dimension_count")
    },
    "attention.key_length": "global_head_dim",
    "attention.key_length_swa": "head_dim",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "embedding_length_per_layer_input": "hidden_size_per_layer_input",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
_GEMMA4_LISTS = {"attention.head_count_kv": "kv_heads_by_layer", "feed_forward_length": "inner_by_layer"}

_QWEN35_TENSORS = {
    **{ours: theirs for ours, theirs in _DECODER_TENSORS.items() if "ffn_norm" not in ours},
    **_QK_NORM_TENSORS,
    "blk.{N}.post_attention_norm.weight": "model.layers.{N}.post_attention_layernorm.weight",
    "blk.{N}.attn_qkv.weight": "model.layers.{N}.linear_attn.in_proj_qkv.weight",
    "blk.{N}.attn_gate.weight": "model.layers.{N}.linear_attn.in_proj_z.weight",
    "blk.{N}.ssm_beta.weight": "model.layers.{N}.linear_attn.in_proj_b.weight",
    "blk.{N}.ssm_alpha.weight": "model.layers.{N}.linear_attn.in_proj_a.weight",
    "blk.{N}.ssm_conv1d.weight": "model.layers.{N}.linear_attn.conv1d.weight",
    "blk.{N}.ssm_a": "model.layers.{N}.linear_attn.A",
    "blk.{N}.ssm_dt.bias": "model.layers.{N}.linear_attn.dt_bias",
    "blk.{N}.ssm_norm.weight": "model.layers.{N}.linear_attn.norm.weight",
    "blk.{N}.ssm_out.weight": "model.layers.{N}.linear_attn.out_proj.weight",
    # A further layer that guesses tokens ahead, which nothing here reads.
    **{
        f"blk.{{N}}.nextn.{name}.weight": f"model.layers.{{N}}.nextn.{name}.weight"
        for name in ("eh_proj", "embed_tokens", "enorm", "hnorm", "shared_head_head", "shared_head_norm")
    },
}
_QWEN35_KEYS = {
    **_DECODER_KEYS,
    "full_attention_interval": "full_attention_interval",
    "nextn_predict_layers": "nextn_predict_layers",
    "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.group_count": "linear_num_key_heads",
    "ssm.inner_size": "linear_inner_size",
    "ssm.state_size": "linear_key_head_dim",
    "ssm.time_step_rank": "linear_num_value_heads",
}
# Its writers store 1 + w, and deal the value heads out to the key heads in turn.
_QWEN35_CONSTANTS = {"norm_offset": 0.0, "linear_heads_tiled": True}


def _gemma4(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """One number for each of the two kinds of layer, where the file has one for each layer."""
    derived: dict[str, Any] = {"attention_k_eq_v": True, "vocab_size_per_layer_input": config.get("vocab_size")}
    kinds, heads, inner = (config.get(key) for key in ("layer_types", "kv_heads_by_layer", "inner_by_layer"))
    if isinstance(heads, list) and kinds is not None and len(heads) == len(kinds):
        by_kind = dict(zip(kinds, heads, strict=True))
        derived["num_key_value_heads"] = by_kind.get("sliding_attention", heads[0])
        derived["num_global_key_value_heads"] = by_kind.get("full_attention")
    else:
        derived["num_key_value_heads"] = heads
    widths = inner if isinstance(inner, list) and inner else [inner]
    derived["intermediate_size"] = widths[0]
    derived["use_double_wide_mlp"] = widths[-1] != widths[0]
    derived["enable_moe_block"] = bool(config.get("num_experts"))
    return derived


_DEEPSEEK2_UNSAID = {"norm_topk_prob": False, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1}


def _deepseek2(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sizes of heads under the newer keys or the older ones; how experts are chosen where the file does not say."""
    derived: dict[str, Any] = {key: config.get(key, value) for key, value in _DEEPSEEK2_UNSAID.items()}
    derived["topk_method"] = "greedy" if derived["n_group"] == 1 else "group_limited_greedy"
    derived["v_head_dim"] = config.get("value_length_of_heads", config.get("v_head_dim"))
    key_length, turned = config.get("key_length_of_heads", config.get("key_length")), config.get("qk_rope_head_dim")
    if isinstance(key_length, int) and isinstance(turned, int):
        derived["qk_nope_head_dim"] = key_length - turned
    rope = config["rope_parameters"]
    if "mscale_all_dim" in rope:  # its writers store a tenth of it, and published models have a mscale that is the same
        growth = round(10 * rope["mscale_all_dim"], 6)
        derived["rope_parameters"] = {**rope, "mscale": growth, "mscale_all_dim": growth}
    return derived


def _qwen35(config: Mapping[str, Any]) -> Mapping[str, Any]:
    derived: dict[str, Any] = {}
    num_layers, num_extra = config.get("num_hidden_layers"), config.get("nextn_predict_layers", 0)
    if isinstance(num_layers, int) and isinstance(num_extra, int):
        derived["num_hidden_layers"] = num_layers - num_extra
    if isinstance(is_recurrent := config.get("recurrent_by_layer"), list):
        kinds = ["linear_attention" if flag else "full_attention" for flag in is_recurrent]
        derived["layer_types"] = kinds[: derived.get("num_hidden_layers")]
    width, num_heads = config.get("linear_inner_size"), config.get("linear_num_value_heads")
    if isinstance(width, int) and isinstance(num_heads, int) and num_heads > 0:
        derived["linear_value_head_dim"] = width // num_heads
    return derived


def _gpt_oss(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """No key says that its rope's bounds are not whole numbers of pairs."""
    return {"rope_parameters": {**config["rope_parameters"], "truncate": False}}


FAMILIES: dict[str, Family] = {
    # Its writers reorder the rows of q and k so that the numbers which a position turns together lie side by side.
    "llama": Family("llama", _DECODER_TENSORS, _DECODER_KEYS, {"rope_interleaved": True}),
    # transformers reads a window for Qwen2 only where the configuration switches it on; GGUF has no such switch.
    "qwen2": Family("qwen2", _DECODER_TENSORS, _DECODER_KEYS, {"use_sliding_window": False}),
    "qwen3": Family("qwen3", {**_DECODER_TENSORS, **_QK_NORM_TENSORS}, _DECODER_KEYS, {"use_sliding_window": False}),
    "smollm3": Family("smollm3", _DECODER_TENSORS, _DECODER_KEYS, {"rope_interleaved": True}),
    "mistral3": Family("ministral3", _DECODER_TENSORS, _DECODER_KEYS, {"rope_interleaved": True}),
    "gemma2": Family("gemma2", _GEMMA_TENSORS, _GEMMA_KEYS, _GEMMA_CONSTANTS, _gemma_scale),
    "gemma3": Family("gemma3_text", _GEMMA3_TENSORS, _GEMMA_KEYS, _GEMMA_CONSTANTS, _gemma3),
    "gemma4": Family("gemma4_text", _GEMMA4_TENSORS, _GEMMA4_KEYS, lists=_GEMMA4_LISTS, derive=_gemma4),
    "qwen35": Family(
        "qwen3_5_text",
        _QWEN35_TENSORS,
        _QWEN35_KEYS,
        _QWEN35_CONSTANTS,
        lists={"attention.recurrent_layers": "recurrent_by_layer"},
        derive=_qwen35,
    ),
    "qwen35moe": Family(
        "qwen3_5_moe_text",
        {
            **{ours: theirs for ours, theirs in _QWEN35_TENSORS.items() if ".mlp." not in theirs},
            **_EXPERT_TENSORS,
            **_SHARED_EXPERT_TENSORS,
            "blk.{N}.ffn_gate_up_exps.weight": "model.layers.{N}.mlp.experts.gate_up_proj",
        },
        {**_QWEN35_KEYS, **_EXPERT_KEYS},
        _QWEN35_CONSTANTS,
        lists={"attention.recurrent_layers": "recurrent_by_layer"},
        derive=_qwen35,
    ),
    "phi3": Family("phi3", _PHI3_TENSORS, _PHI3_KEYS),
    # No key says whether the weights of chosen experts sum to 1: each family's published models agree.
    "qwen2moe": Family(
        "qwen2_moe",
        {**_QWEN_MOE_TENSORS, **_SHARED_EXPERT_TENSORS},
        _EXPERT_KEYS,
        {"use_sliding_window": False, "norm_topk_prob": False},
    ),
    "qwen3moe": Family(
        "qwen3_moe",
        {**_QWEN_MOE_TENSORS, **_QK_NORM_TENSORS},
        _EXPERT_KEYS,
        {"use_sliding_window": False, "norm_topk_prob": True},
    ),
    "gpt-oss": Family("gpt_oss", _GPT_OSS_TENSORS, _EXPERT_KEYS, derive=_gpt_oss),
    "deepseek2": Family("deepseek_v2", _DEEPSEEK2_TENSORS, _DEEPSEEK2_KEYS, derive=_deepseek2),
}
# The part that reads text of models that also see. Positions of text alone turn as in the model without eyes.
FAMILIES |= {"qwen2vl": FAMILIES["qwen2"], "qwen3vl": FAMILIES["qwen3"], "qwen3vlmoe": FAMILIES["qwen3moe"]}


@dataclass(frozen=True, slots=True)
class Variant:
    """What files of an architecture above are where a key of theirs says so."""

    family: Family
    key: str
    is_meant_by: Callable[[Any], bool]


_MIXTRAL = Family("mixtral", _MIXTRAL_TENSORS, _EXPERT_KEYS, {"rope_interleaved": True})
_DEEPSEEK3 = replace(FAMILIES["deepseek2"], model_type="deepseek_v3")
_SIGMOID = 2
VARIANTS: dict[str, Variant] = {
    "llama": Variant(_MIXTRAL, "expert_count", bool),
    "deepseek2": Variant(_DEEPSEEK3, "expert_gating_func", lambda value: value == _SIGMOID),
}

_ROPE_SCALING_KEYS = {
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.attn_factor": "attention_factor",
    "rope.scaling.yarn_attn_factor": "attention_factor",
    "rope.scaling.yarn_log_multiplier": "mscale_all_dim",
    "attention.temperature_scale": "llama_4_scaling_beta",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
_ROPE_TYPES = {"none": "default", "linear": "linear", "yarn": "yarn", "longrope": "longrope"}

_SAMPLING_KEYS = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
}
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_CONTROL_TOKEN = 3
# Files of chat models often name only the end of a document as their end; these texts end a turn in any family.
_TURN_ENDS = frozenset(
    ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<EOT>")
)


def family_of(metadata: Mapping[str, Any], *, path: object) -> tuple[str, Family]:
    """The architecture's name and its entry. Raises `UnsupportedModel` that lists those which are known."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise UnusableFile(path, KIND, "general.architecture, which names the model's family, is missing")
    if architecture not in FAMILIES:
        raise UnsupportedModel(
            f"{path} is a model of the family {architecture!r}; the built-in engine knows {', '.join(FAMILIES)}",
            hint='engine="torch" runs most families',
        )
    variant = VARIANTS.get(architecture)
    if variant is not None and variant.is_meant_by(metadata.get(f"{architecture}.{variant.key}")):
        return architecture, variant.family
    return architecture, FAMILIES[architecture]


def tensor_name(family: Family, name: str, *, path: object) -> str:
    """Hugging Face's name of a tensor. Raises `UnsupportedModel` for one that the family does not have."""
    layer = re.match(r"blk\.(0|[1-9]\d*)\.", name)
    pattern = name.replace(layer[0], "blk.{N}.", 1) if layer else name
    if pattern not in family.tensors:
        raise UnsupportedModel(
            f"{path} holds the tensor {name!r}, which no {family.model_type} model that Kaiwa knows has",
            hint='engine="torch" runs most families',
        )
    return family.tensors[pattern].replace("{N}", layer[1] if layer else "")


def config_of(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor], *, path: object) -> dict[str, Any]:
    """The configuration as `config.json` would have it, checked; `tensors` have Hugging Face's names.

    `rope_interleaved` is True where the rows of q and k are stored for positions that turn neighbouring numbers.
    """
    architecture, family = family_of(metadata, path=path)
    names = {theirs: f"{architecture}.{ours}" for ours, theirs in family.keys.items()}
    config: dict[str, Any] = {
        theirs: _plain(metadata[key], key, path) for theirs, key in names.items() if key in metadata
    }
    if "attention.value_length" not in family.keys:
        _check_value_length(metadata, architecture, path)
    num_tokens = len(_vocabulary(metadata, path))
    embeddings = tensors.get("model.embed_tokens.weight")
    if embeddings is None:
        raise UnusableFile(path, KIND, "it holds no tensor 'token_embd.weight'", hint="is it a vocabulary only?")
    if num_tokens > embeddings.shape[0]:
        raise UnusableFile(
            path, KIND, f"it has {num_tokens:,} tokens, and 'token_embd.weight' only {embeddings.shape[0]:,} rows"
        )
    config |= family.constants
    config |= {
        "model_type": family.model_type,
        "vocab_size": embeddings.shape[0],
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "attention_bias": "model.layers.0.self_attn.q_proj.bias" in tensors,
        "mlp_bias": "model.layers.0.mlp.up_proj.bias" in tensors,
        "rope_parameters": _rope_parameters(metadata, architecture, path),
    }
    if config.get("sliding_window") == 0:
        config["sliding_window"] = None
    config |= _layer_types(metadata.get(f"{architecture}.attention.sliding_window_pattern"))
    for ours, theirs in family.lists.items():
        if (value := metadata.get(f"{architecture}.{ours}")) is not None:
            config[theirs] = list(value) if isinstance(value, list | array.array) else value
    config |= family.derive(config)
    if "rope_factors_long.weight" in tensors:
        config["rope_parameters"]["rope_type"] = "longrope"
    config |= {key: value for key, value in generation_config_of(metadata, path=path).items() if key.endswith("_id")}
    return normalize_config(config, path=path, kind=KIND, name_of=lambda key: names.get(key, key))


def generation_config_of(metadata: Mapping[str, Any], *, path: object) -> dict[str, Any]:
    """What `generation_config.json` would say: special token ids (`eos_token_id` is a list), sampling defaults."""
    config = {theirs: _plain(metadata[key], key, path) for key, theirs in _SAMPLING_KEYS.items() if key in metadata}
    ids = {key: _token_id(metadata, key, path) for key in ("bos_token_id", *_END_KEYS)}
    if ids["bos_token_id"] is not None:
        config["bos_token_id"] = ids["bos_token_id"]
    ends = {id for key in _END_KEYS if (id := ids[key]) is not None}
    config["eos_token_id"] = sorted(ends | _turn_ends(metadata, path))
    return config


def _vocabulary(metadata: Mapping[str, Any], path: object) -> list[str]:
    texts = metadata.get("tokenizer.ggml.tokens", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts[:1]):  # all are of one type
        raise UnusableFile(path, KIND, "tokenizer.ggml.tokens is not a list of texts")
    return texts


def _turn_ends(metadata: Mapping[str, Any], path: object) -> set[int]:
    texts, types = _vocabulary(metadata, path), metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, array.array) or len(types) > len(texts):
        return set()
    return {id for id, type in enumerate(types) if type == _CONTROL_TOKEN and texts[id] in _TURN_ENDS}


def _token_id(metadata: Mapping[str, Any], key: str, path: object) -> int | None:
    key = f"tokenizer.ggml.{key}"
    value = metadata.get(key)
    if value is None:
        return None
    num_tokens = len(_vocabulary(metadata, path))
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < num_tokens:
        raise UnusableFile(path, KIND, f"{key} is {value!r}, and the vocabulary has {num_tokens:,} tokens")
    return value


def _check_value_length(metadata: Mapping[str, Any], architecture: str, path: object) -> None:
    key_length = metadata.get(f"{architecture}.attention.key_length")
    value_length = metadata.get(f"{architecture}.attention.value_length")
    if value_length is not None and value_length != key_length:
        raise UnsupportedModel(f"{path} has heads of {key_length} numbers in its keys and {value_length} in its values")


def _rope_parameters(metadata: Mapping[str, Any], architecture: str, path: object) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        theirs: _plain(metadata[f"{architecture}.{ours}"], ours, path)
        for ours, theirs in _ROPE_SCALING_KEYS.items()
        if f"{architecture}.{ours}" in metadata
    }
    # Older files write only a factor, under an older name too, and mean linear scaling.
    if (legacy := metadata.get(f"{architecture}.rope.scale_linear")) is not None:
        parameters.setdefault("factor", legacy)
    key = f"{architecture}.rope.scaling.type"
    scaling = metadata.get(key, "linear" if parameters.get("factor") else "none")
    if not isinstance(scaling, str) or scaling not in _ROPE_TYPES:
        raise UnsupportedModel(f"{path} has {key} {scaling!r}; Kaiwa knows {', '.join(_ROPE_TYPES)}")
    if scaling == "none":
        return {"rope_type": "default"}
    if "mscale_all_dim" in parameters:
        parameters["mscale"] = 1.0
    return {**parameters, "rope_type": _ROPE_TYPES[scaling]}


def _layer_types(pattern: Any) -> dict[str, Any]:
    """Which layers see a window: one in every so many does not, or as a list says."""
    if pattern is None:
        return {}
    if isinstance(pattern, list | array.array):
        return {"layer_types": ["sliding_attention" if is_sliding else "full_attention" for is_sliding in pattern]}
    return {"sliding_window_pattern": pattern}


def _plain(value: Any, key: str, path: object) -> Any:
    """A number as a person would write it; one number where a file repeats it for every layer."""
    if isinstance(value, array.array):
        if len(set(value)) != 1:
            raise UnsupportedModel(f"{path} has a {key} that differs from layer to layer: {value.tolist()}")
        value = value[0]
    if isinstance(value, float):
        return _shortest(value)
    return value


def _shortest(value: float) -> float:
    """The shortest decimal that is the same number in float32: 0.9, where a file has 0.8999999761581421."""
    single = struct.Struct("<f")
    try:
        packed = single.pack(value)
    except OverflowError:
        return value
    return next(
        (short for digits in range(1, 10) if single.pack(short := float(f"{value:.{digits}g}")) == packed), value
    )
