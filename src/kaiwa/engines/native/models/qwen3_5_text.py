"""Qwen3.5, its text part: a gated delta net in most layers, gated attention in each fourth.

Qwen team 2026; Yang et al. 2024, "Gated Delta Networks". The layer is: norm, delta net or attention, add; norm, gated
feed-forward, add. Three positions of a token, for pictures, are one and the same in text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native import rope
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.models.llama import FeedForward
from kaiwa.engines.native.program import DeltaHeads, Heads, Normed, Program, Projection, Value
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel


def record(
    program: Program,
    config: Mapping[str, Any],
    weights: Weights,
    *,
    feed_forward: FeedForward = llama.feed_forward,
) -> None:
    """Write the model's steps down. Raises `UnsupportedModel` for heads that the delta net's step does not know."""
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    turn = rope.from_config(config)
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x = program.embed(embeddings)
    for layer, kind in enumerate(config["layer_types"]):
        normed = _norm(program, config, weights, x, f"model.layers.{layer}.input_layernorm")
        if kind == "linear_attention":
            x = _delta_net(program, config, weights, x, normed, f"model.layers.{layer}.linear_attn")
        else:
            x = _attention(program, config, weights, x, normed, layer, turn)
        normed = _norm(program, config, weights, x, f"model.layers.{layer}.post_attention_layernorm")
        x = feed_forward(program, config, weights, normed, layer)
    norm = weights.vector("model.norm.weight", hidden, offset=config["norm_offset"])
    head = embeddings if config.get("tie_word_embeddings") else weights.matrix("lm_head.weight", vocab, hidden)
    program.logits(x, norm, eps, head)


def _delta_net(
    program: Program, config: Mapping[str, Any], weights: Weights, x: Value, normed: Normed, prefix: str
) -> Value:
    hidden, num_value_heads = config["hidden_size"], config["linear_num_value_heads"]
    heads = _delta_heads(config, weights, prefix)
    value_width = num_value_heads * heads.value_dim
    channels, gate, beta, alpha = program.linear(
        normed,
        [
            Projection(weights.matrix(f"{prefix}.in_proj_{name}.weight", rows, hidden))
            for name, rows in (
                ("qkv", heads.num_channels), ("z", value_width), ("b", num_value_heads), ("a", num_value_heads)
            )
        ],
    )  # fmt: skip
    found = program.delta_net(channels, gate, beta, alpha, heads)
    (x,) = program.linear(found, [Projection(weights.matrix(f"{prefix}.out_proj.weight", hidden, value_width))], onto=x)
    return x


def _delta_heads(config: Mapping[str, Any], weights: Weights, prefix: str) -> DeltaHeads:
    num_key_heads, num_value_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    key_dim, value_dim = config["linear_key_head_dim"], config["linear_value_head_dim"]
    if key_dim % 16 or value_dim % 16 or num_value_heads % num_key_heads:
        raise UnsupportedModel(
            f"this model's delta net has {num_key_heads} key heads of {key_dim} numbers and {num_value_heads} value "
            f"heads of {value_dim}; Kaiwa needs multiples of 16, and as many value heads for each key head"
        )
    # GGUF holds -exp(A_log).
    decays = weights.numbers(f"{prefix}.A") or [-math.exp(a) for a in weights.needed_numbers(f"{prefix}.A_log")]
    num_channels = 2 * num_key_heads * key_dim + num_value_heads * value_dim
    return DeltaHeads(
        num_key_heads=num_key_heads,
        num_value_heads=num_value_heads,
        key_dim=key_dim,
        value_dim=value_dim,
        convolution=weights.convolution(f"{prefix}.conv1d.weight", num_channels, config["linear_conv_kernel_dim"]),
        decays=decays,
        biases=weights.needed_numbers(f"{prefix}.dt_bias"),
        norm=weights.vector(f"{prefix}.norm.weight", value_dim),
        norm_eps=config["rms_norm_eps"],
        is_tiled=bool(config.get("linear_heads_tiled")),
    )


def _attention(
    program: Program,
    config: Mapping[str, Any],
    weights: Weights,
    x: Value,
    normed: Normed,
    layer: int,
    turn: rope.Rope,
) -> Value:
    hidden, dim, prefix = config["hidden_size"], config["head_dim"], f"model.layers.{layer}.self_attn"
    heads = Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=dim,
        scale=dim**-0.5,
        rope=turn,
        query_norm=weights.vector(f"{prefix}.q_norm.weight", dim, offset=config["norm_offset"]),
        key_norm=weights.vector(f"{prefix}.k_norm.weight", dim, offset=config["norm_offset"]),
        norm_eps=config["rms_norm_eps"],
        is_gated=True,
    )

    width, kv_width = heads.num_heads * dim, heads.num_kv_heads * dim
    q, k, v = program.linear(
        normed,
        [
            llama.project(weights, f"{prefix}.{name}_proj", rows, hidden)
            for name, rows in (("q", 2 * width), ("k", kv_width), ("v", kv_width))
        ],
    )
    attended = program.attention(q, k, v, layer, heads)
    (x,) = program.linear(attended, [llama.project(weights, f"{prefix}.o_proj", hidden, width)], onto=x)
    return x


def _norm(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, name: str) -> Normed:
    weight = weights.vector(f"{name}.weight", config["hidden_size"], offset=config["norm_offset"])
    return program.rms_norm(x, weight, config["rms_norm_eps"])
