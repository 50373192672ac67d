"""Llama 2 and 3, SmolLM2, and what differs from them only by a bias or a window.

Touvron et al. 2023; the layer is: norm, attention, add; norm, gated feed-forward, add.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native import rope
from kaiwa.engines.native.program import Heads, Program, Projection, Value
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights, *, window: int = 0) -> None:
    """Write the model's steps down. `window`: how many positions a token sees, its own included; 0 is all."""
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    heads = Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        scale=config["head_dim"] ** -0.5,
        rope=rope.from_config(config, factors=weights.numbers("rope_freqs.weight")),
        rope_is_interleaved=bool(config.get("rope_interleaved")),
        window=window,
    )
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x = program.embed(embeddings)
    for layer in range(config["num_hidden_layers"]):
        x = _layer(program, config, weights, x, layer, heads)
    norm = weights.vector("model.norm.weight", hidden)
    head = embeddings if config.get("tie_word_embeddings") else weights.matrix("lm_head.weight", vocab, hidden)
    program.logits(x, norm, eps, head)


def _layer(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, heads: Heads) -> Value:
    hidden, inner, eps = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
    prefix = f"model.layers.{layer}"

    def project(name: str, rows: int, columns: int) -> Projection:
        full = f"{prefix}.self_attn.{name}"
        return Projection(
            weights.matrix(f"{full}.weight", rows, columns), weights.optional_vector(f"{full}.bias", rows)
        )

    attention_width, kv_width = heads.num_heads * heads.head_dim, heads.num_kv_heads * heads.head_dim
    normed = program.rms_norm(x, weights.vector(f"{prefix}.input_layernorm.weight", hidden), eps)
    q, k, v = program.linear(
        normed,
        [project("q_proj", attention_width, hidden), project("k_proj", kv_width, hidden),
         project("v_proj", kv_width, hidden)],
    )  # fmt: skip
    attended = program.attention(q, k, v, layer, heads)
    (x,) = program.linear(attended, [project("o_proj", hidden, attention_width)], onto=x)

    normed = program.rms_norm(x, weights.vector(f"{prefix}.post_attention_layernorm.weight", hidden), eps)
    gate = weights.matrix(f"{prefix}.mlp.gate_proj.weight", inner, hidden)
    up = weights.matrix(f"{prefix}.mlp.up_proj.weight", inner, hidden)
    gated = program.gated(normed, gate, up, "silu")
    down = Projection(weights.matrix(f"{prefix}.mlp.down_proj.weight", hidden, inner))
    (x,) = program.linear(gated, [down], onto=x)
    return x
