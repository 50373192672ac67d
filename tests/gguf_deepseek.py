"""How llama.cpp's converters write DeepSeek V2 and V3, in terms of the `gguf` package: for `gguf_reference`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np

DEEPSEEK2_NAMES = {
    "attn_q_a.weight": "self_attn.q_a_proj.weight",
    "attn_q_a_norm.weight": "self_attn.q_a_layernorm.weight",
    "attn_q_b.weight": "self_attn.q_b_proj.weight",
    "attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight",
    "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight",
    "attn_kv_b.weight": "self_attn.kv_b_proj.weight",
    "attn_k_b.weight": "self_attn.k_b_proj.weight",
    "attn_v_b.weight": "self_attn.v_b_proj.weight",
    "exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "ffn_gate_exps.weight": "mlp.experts.gate_proj.weight",
    "ffn_up_exps.weight": "mlp.experts.up_proj.weight",
    "ffn_down_exps.weight": "mlp.experts.down_proj.weight",
    "ffn_gate_shexp.weight": "mlp.shared_experts.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_experts.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_experts.down_proj.weight",
}


def add_deepseek2(writer: gguf.GGUFWriter, config: Mapping[str, Any], *, is_old: bool) -> None:
    """The sizes of the latent and of heads, and how experts are chosen; `is_old` is as files were until spring 2025."""
    rank, turned = config["kv_lora_rank"], config["qk_rope_head_dim"]
    key_length, value_length = config["qk_nope_head_dim"] + turned, config["v_head_dim"]
    if is_old:
        writer.add_head_count_kv(config["num_attention_heads"])
        writer.add_key_length(key_length)
        writer.add_value_length(value_length)
    else:
        writer.add_head_count_kv(1)
        writer.add_key_length(rank + turned)
        writer.add_value_length(rank)
        writer.add_key_length_mla(key_length)
        writer.add_value_length_mla(value_length)
    writer.add_kv_lora_rank(rank)
    if config["q_lora_rank"] is not None:
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_rope_dimension_count(turned)
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])
    if config["model_type"] == "deepseek_v3":
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_norm(config["norm_topk_prob"])
    if (growth := config["rope_parameters"].get("mscale_all_dim")) is not None:
        writer.add_rope_scaling_yarn_log_mul(0.1 * growth)


def split_latent(weights: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights with two matrices for each head, that of its keys rows for columns, in place of one for all."""
    plain, value_length = config["qk_nope_head_dim"], config["v_head_dim"]
    split = dict(weights)
    for name in [name for name in weights if name.endswith("kv_b_proj.weight")]:
        both = split.pop(name).reshape(config["num_attention_heads"], plain + value_length, -1)
        split[name.replace("kv_b_proj", "k_b_proj")] = np.ascontiguousarray(both[:, :plain].swapaxes(1, 2))
        split[name.replace("kv_b_proj", "v_b_proj")] = np.ascontiguousarray(both[:, plain:])
    return split
