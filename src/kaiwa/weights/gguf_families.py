"""The architectures of GGUF files: what each calls its tensors and keys, in Hugging Face's words. Tables only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


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
