"""GGUF files through the `gguf` package, which knows nothing of our reader: the second opinion of the tests.

Hugging Face's names on our side of every function, GGUF's on the other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file

from gguf_deepseek import DEEPSEEK2_NAMES, add_deepseek2, split_latent
from gguf_hybrids import GEMMA4_NAMES, GEMMA4_TABLES, QWEN35_NAMES, add_gemma4, add_qwen35, convert_qwen35

TENSOR_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
ARCHITECTURES = {
    "mistral": "llama",
    "mixtral": "llama",
    "ministral3": "mistral3",
    "gemma3_text": "gemma3",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "gpt_oss": "gpt-oss",
    "gemma4_text": "gemma4",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe_text": "qwen35moe",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
}
"""The families whose architecture in GGUF has another name."""

INTERLEAVED = ("llama", "smollm3", "mistral3")
"""The architectures whose converter reorders the rows of q and k."""

LAYER_TENSOR_NAMES = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}

_QK_NORMS = {"attn_q_norm.weight": "self_attn.q_norm.weight", "attn_k_norm.weight": "self_attn.k_norm.weight"}
_GEMMA_NORMS = {
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
}
_EXPERTS = {
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "ffn_gate_exps.weight": "mlp.experts.gate_proj.weight",
    "ffn_up_exps.weight": "mlp.experts.up_proj.weight",
    "ffn_down_exps.weight": "mlp.experts.down_proj.weight",
}
_SHARED_EXPERT = {
    "ffn_gate_inp_shexp.weight": "mlp.shared_expert_gate.weight",
    "ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight",
}
MORE_LAYER_TENSOR_NAMES = {
    "llama": _EXPERTS,
    "qwen2moe": _EXPERTS | _SHARED_EXPERT,
    "qwen3moe": _EXPERTS | _QK_NORMS,
    "gpt-oss": _EXPERTS
    | {
        "attn_output.bias": "self_attn.o_proj.bias",
        "attn_sinks.weight": "self_attn.sinks",
        "ffn_norm.weight": "no tensor of this family",
        "post_attention_norm.weight": "post_attention_layernorm.weight",
        "ffn_gate_inp.weight": "mlp.router.weight",
        "ffn_gate_inp.bias": "mlp.router.bias",
        "ffn_gate_exps.bias": "mlp.experts.gate_proj.bias",
        "ffn_up_exps.bias": "mlp.experts.up_proj.bias",
        "ffn_down_exps.bias": "mlp.experts.down_proj.bias",
    },
    "qwen3": _QK_NORMS,
    "gemma2": _GEMMA_NORMS,
    "gemma3": _GEMMA_NORMS | _QK_NORMS,
    "gemma4": _GEMMA_NORMS | _QK_NORMS | GEMMA4_NAMES,
    "qwen35": QWEN35_NAMES,
    "qwen35moe": QWEN35_NAMES | _EXPERTS | _SHARED_EXPERT,
    "deepseek2": DEEPSEEK2_NAMES,
    "phi3": {"attn_qkv.weight": "self_attn.qkv_proj.weight", "ffn_up.weight": "mlp.gate_up_proj.weight"},
}
"""What differs in other architectures than llama."""


def tensor_names(num_layers: int, architecture: str = "llama") -> dict[str, str]:
    """Hugging Face's name of every tensor, by its name in GGUF."""
    layers = {
        f"blk.{layer}.{ours}": f"model.layers.{layer}.{theirs}"
        for layer in range(num_layers)
        for ours, theirs in (LAYER_TENSOR_NAMES | MORE_LAYER_TENSOR_NAMES.get(architecture, {})).items()
    }
    return TENSOR_NAMES | (GEMMA4_TABLES if architecture == "gemma4" else {}) | layers


def interleave_rope(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """The rows of a q or k projection in the order of architecture llama: (0, d/2, 1, d/2 + 1, …) in each head."""
    halves = rows.reshape(num_heads, 2, -1, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def deinterleave_rope(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """The inverse of `interleave_rope`."""
    pairs = rows.reshape(num_heads, -1, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a GGUF file of architecture llama, unpacked to float32, by Hugging Face's names."""
    reader = gguf.GGUFReader(path)
    names = tensor_names(int(reader.fields["llama.block_count"].contents()))
    heads = int(reader.fields["llama.attention.head_count"].contents())
    kv_heads = int(reader.fields["llama.attention.head_count_kv"].contents())
    weights = {}
    for tensor in reader.tensors:
        name = names[tensor.name]
        weights[name] = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if "q_proj" in name or "k_proj" in name:
            weights[name] = deinterleave_rope(weights[name], heads if "q_proj" in name else kv_heads)
    return weights


def rope_frequency_factors(config: Mapping[str, Any], rope_theta: float, head_dim: int) -> np.ndarray:
    """What Llama 3.1 divides each rotary frequency by: float32, shape (head_dim / 2,)."""
    factor, original = config["factor"], config["original_max_position_embeddings"]
    low, high = config["low_freq_factor"], config["high_freq_factor"]
    factors = []
    for index in range(head_dim // 2):
        turns = original / (2 * math.pi * rope_theta ** (2 * index / head_dim))
        smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
        factors.append(1 / (smooth + (1 - smooth) / factor))
    return np.array(factors, dtype=np.float32)


def write_checkpoint(
    folder: Path, path: Path, *, is_old: bool = False, formats: Mapping[str, str] | None = None
) -> None:
    """Write a Hugging Face folder as a GGUF file in float32, as llama.cpp's converter would, or, if `is_old`, once did.

    `formats` are those of tensors, by the part of their name behind the layer, which are to be quantized.
    """
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES.get(config["model_type"], config["model_type"])
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    ropes = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope = ropes.get("full_attention", ropes)
    rope_theta = rope.get("rope_theta") or config["rope_theta"]

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(folder.name)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(heads)
    if architecture == "gemma4":
        add_gemma4(writer, config)
    elif architecture == "deepseek2":
        writer.add_feed_forward_length(config["intermediate_size"])
        add_deepseek2(writer, config, is_old=is_old)
    else:
        writer.add_feed_forward_length(config.get("intermediate_size") or config["moe_intermediate_size"])
        writer.add_head_count_kv(kv_heads)
        writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    if architecture in ("qwen35", "qwen35moe"):
        add_qwen35(writer, config)
    if architecture not in ("phi3", "gemma4", "deepseek2"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope_theta)
    writer.add_vocab_size(config["vocab_size"])
    _add_experts(writer, config)
    _add_windows(writer, config, architecture)
    _add_rope_scaling(writer, config, rope)
    _add_tokenizer(writer, config["vocab_size"])

    weights: dict[str, np.ndarray] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        weights |= load_file(shard)
    if architecture != "gemma4":  # whose files keep gates and what they multiply in one
        weights = stack_experts(weights)
    if architecture == "deepseek2" and not is_old:
        weights = split_latent(weights, config)
    for name, theirs in tensor_names(config["num_hidden_layers"], architecture).items():
        if theirs not in weights:
            continue
        tensor = weights.pop(theirs)
        if architecture in INTERLEAVED and ("attn_q." in name or "attn_k." in name):
            tensor = interleave_rope(tensor, heads if "attn_q." in name else kv_heads)
        if architecture in ("gemma2", "gemma3") and theirs.endswith("norm.weight"):
            tensor = tensor + np.float32(1)
        if architecture in ("qwen35", "qwen35moe"):
            tensor = convert_qwen35(theirs, tensor, config)
        kind = gguf.GGMLQuantizationType[(formats or {}).get(name.split(".")[-2], "F32")]
        writer.add_tensor(name, quantize(tensor, kind), raw_dtype=kind)
    assert not weights, f"tensors without a name in GGUF: {sorted(weights)}"
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_frequency_factors(rope, rope_theta, head_dim))
    if rope.get("rope_type") == "longrope":
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], dtype=np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def stack_experts(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights with those of all experts in one: an array for each kind of matrix, and of bias.

    The gate of a shared expert is a vector in GGUF, too.
    """
    stacked: dict[str, np.ndarray] = {}
    experts: dict[str, list[np.ndarray]] = {}
    for name, tensor in weights.items():
        name = name.replace("block_sparse_moe", "mlp")
        if match := re.fullmatch(r"(.*\.experts)\.\d+\.(\w+)\.weight", name):
            kind = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}.get(match[2], match[2])
            experts.setdefault(f"{match[1]}.{kind}.weight", []).append(tensor)
        elif match := re.fullmatch(r"(.*\.experts)\.(gate_up|down)_proj(_bias)?", name):
            is_gpt_oss = f"{match[1]}.{match[2]}_proj_bias" in weights
            rows = tensor.swapaxes(1, 2) if is_gpt_oss and not match[3] else tensor
            ending = "bias" if match[3] else "weight"
            if match[2] == "down":
                stacked[f"{match[1]}.down_proj.{ending}"] = np.ascontiguousarray(rows)
            elif not is_gpt_oss:
                gates, ups = np.split(rows, 2, axis=1)
                stacked[f"{match[1]}.gate_proj.weight"] = np.ascontiguousarray(gates)
                stacked[f"{match[1]}.up_proj.weight"] = np.ascontiguousarray(ups)
            else:
                stacked[f"{match[1]}.gate_proj.{ending}"] = np.ascontiguousarray(rows[:, 0::2])
                stacked[f"{match[1]}.up_proj.{ending}"] = np.ascontiguousarray(rows[:, 1::2])
        else:
            stacked[name] = tensor[0] if name.endswith("shared_expert_gate.weight") else tensor
    return stacked | {name: np.stack(tensors) for name, tensors in experts.items()}


def _add_experts(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    num_chosen = config.get("num_experts_per_tok") or config.get("top_k_experts")
    if num_chosen is None:
        return
    if "n_routed_experts" not in config:
        writer.add_expert_count(config.get("num_experts") or config["num_local_experts"])
    writer.add_expert_used_count(num_chosen)
    if config["model_type"] != "mixtral":
        writer.add_expert_feed_forward_length(config.get("moe_intermediate_size") or config["intermediate_size"])
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])


def _add_windows(writer: gguf.GGUFWriter, config: Mapping[str, Any], architecture: str) -> None:
    if architecture == "phi3":
        writer.add_sliding_window(config["sliding_window"] or 0)
    if architecture in ("gemma2", "gemma3", "gpt-oss"):
        writer.add_sliding_window(config["sliding_window"])
    if architecture == "gemma3":  # by default one layer in six; a smaller model says so
        writer.add_sliding_window_pattern(config["layer_types"].index("full_attention") + 1)
        writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])


def _add_rope_scaling(writer: gguf.GGUFWriter, config: Mapping[str, Any], rope: Mapping[str, Any]) -> None:
    kind = rope.get("rope_type")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "yarn" and "beta_fast" in rope:
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if kind == "yarn" and "llama_4_scaling_beta" in rope:
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if kind == "longrope":
        original = rope["original_max_position_embeddings"]
        growth = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(growth) / math.log(original)))


def _add_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """The smallest vocabulary that a reader accepts: one token per byte would do, and ids have no meaning here."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"<{index}>" for index in range(vocab_size)])
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * vocab_size)
    writer.add_token_merges([])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
