"""GGUF files through the `gguf` package, which knows nothing of our reader: the second opinion of the tests.

Hugging Face's names on our side of every function, GGUF's on the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import dequantize
from safetensors.numpy import load_file

TENSOR_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
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


def tensor_names(num_layers: int) -> dict[str, str]:
    """Hugging Face's name of every tensor, by its name in GGUF."""
    layers = {
        f"blk.{layer}.{ours}": f"model.layers.{layer}.{theirs}"
        for layer in range(num_layers)
        for ours, theirs in LAYER_TENSOR_NAMES.items()
    }
    return TENSOR_NAMES | layers


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


def write_checkpoint(folder: Path, path: Path) -> None:
    """Write a Hugging Face folder as a GGUF file in float32, as llama.cpp's converter would."""
    config = json.loads((folder / "config.json").read_text())
    architecture = "qwen2" if config["model_type"] == "qwen2" else "llama"
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope_theta = rope.get("rope_theta") or config["rope_theta"]

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(folder.name)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope_theta)
    writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, config["vocab_size"])

    weights: dict[str, np.ndarray] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        weights |= load_file(shard)
    for name, theirs in tensor_names(config["num_hidden_layers"]).items():
        if theirs not in weights:
            continue
        tensor = weights[theirs]
        if architecture == "llama" and ("attn_q." in name or "attn_k." in name):
            tensor = interleave_rope(tensor, heads if "attn_q." in name else kv_heads)
        writer.add_tensor(name, tensor)
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_frequency_factors(rope, rope_theta, head_dim))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """The smallest vocabulary that a reader accepts: one token per byte would do, and ids have no meaning here."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"<{index}>" for index in range(vocab_size)])
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * vocab_size)
    writer.add_token_merges([])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
