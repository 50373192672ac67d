"""How llama.cpp's converter writes Qwen3.5 and Gemma 4, in terms of the `gguf` package: for `gguf_reference`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np

QWEN35_NAMES = {
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "none",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
    "attn_gate.weight": "linear_attn.in_proj_z.weight",
    "ssm_beta.weight": "linear_attn.in_proj_b.weight",
    "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
    "ssm_conv1d.weight": "linear_attn.conv1d.weight",
    "ssm_a": "linear_attn.A_log",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_norm.weight": "linear_attn.norm.weight",
    "ssm_out.weight": "linear_attn.out_proj.weight",
}
GEMMA4_NAMES = {
    "inp_gate.weight": "per_layer_input_gate.weight",
    "proj.weight": "per_layer_projection.weight",
    "post_norm.weight": "post_per_layer_input_norm.weight",
    "layer_output_scale.weight": "layer_scalar",
    "ffn_gate_inp.weight": "router.proj.weight",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_down_exps.weight": "experts.down_proj",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight",
    "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
    "post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
}
GEMMA4_TABLES = {
    "per_layer_token_embd.weight": "model.embed_tokens_per_layer.weight",
    "per_layer_model_proj.weight": "model.per_layer_model_projection.weight",
    "per_layer_proj_norm.weight": "model.per_layer_projection_norm.weight",
}


def convert_qwen35(name: str, tensor: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
    """A tensor as the converter stores it: value heads dealt out in turn, norms as 1 + w, decays as -exp(A_log)."""
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    value_dim, num_key_rows = config["linear_value_head_dim"], 2 * keys * config["linear_key_head_dim"]

    def deal(rows: np.ndarray, dim: int) -> np.ndarray:
        grouped = rows.reshape(keys, values // keys, dim, *rows.shape[1:])
        return np.ascontiguousarray(grouped.swapaxes(0, 1)).reshape(rows.shape)

    if name.endswith("norm.weight") and "linear_attn" not in name:
        return tensor + np.float32(1)
    if "conv1d" in name:
        tensor = tensor[:, 0]
    if "in_proj_qkv" in name or "conv1d" in name:
        return np.concatenate([tensor[:num_key_rows], deal(tensor[num_key_rows:], value_dim)])
    if "in_proj_z" in name:
        return deal(tensor, value_dim)
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "dt_bias", "A_log")):
        tensor = deal(tensor, 1)
        return -np.exp(tensor) if name.endswith("A_log") else tensor
    return np.ascontiguousarray(deal(tensor.T, value_dim).T) if "linear_attn.out_proj" in name else tensor


def add_qwen35(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """The sizes of the delta net, and which layers are one."""
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_value_head_dim"] * config["linear_num_value_heads"])
    recurrent = [kind == "linear_attention" for kind in config["layer_types"]]
    writer.add_array(f"{writer.arch}.attention.recurrent_layers", recurrent)  # newer than the package's own words
    writer.add_full_attention_interval(4)
    writer.add_rope_dimension_sections([11, 11, 10, 0])


def add_gemma4(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """The two shapes of layers, and what the last ones share."""
    kinds, num_shared = config["layer_types"], config["num_kv_shared_layers"]
    large = next(iter(config["per_layer_config"].values()))
    for length, add in (
        (large["head_dim"], (writer.add_key_length, writer.add_value_length, writer.add_rope_dimension_count)),
        (
            config["head_dim"],
            (writer.add_key_length_swa, writer.add_value_length_swa, writer.add_rope_dimension_count_swa),
        ),
    ):
        for add_one in add:
            add_one(length)
    kv_heads = config["num_key_value_heads"]
    if "num_key_value_heads" in large:
        by_layer = [kv_heads if kind == "sliding_attention" else large["num_key_value_heads"] for kind in kinds]
        writer.add_head_count_kv(by_layer)
    else:
        writer.add_head_count_kv(kv_heads)
    inner, num_own = config["intermediate_size"], len(kinds) - num_shared
    if config["use_double_wide_mlp"]:
        writer.add_feed_forward_length([inner if layer < num_own else 2 * inner for layer in range(len(kinds))])
    else:
        writer.add_feed_forward_length(inner)
    writer.add_shared_kv_layers(num_shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in kinds])
    writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])
    if config["final_logit_softcapping"]:
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    # Frequencies that hardly turn, for the pairs that do not: the same for all layers without a window.
    pairs = large["head_dim"] // 2
    turned = int(pairs * config["rope_parameters"]["full_attention"]["partial_rotary_factor"])
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turned + [1e30] * (pairs - turned), dtype=np.float32))
