"""Gemma 2: norms before and after each half of a layer, capped scores and logits, a window on every second layer.

Gemma Team 2024. Its norms multiply by 1 + w (`norm_offset`), and its embeddings by the root of their width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native import rope
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.models.llama import HeadsOf
from kaiwa.engines.native.program import Heads, Normed, Program, Value
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel


def record(program: Program, config: Mapping[str, Any], weights: Weights, heads_of: HeadsOf | None = None) -> None:
    """Write the model's steps down. `heads_of` are the heads of each layer, where a family has its own."""
    if config.get("use_bidirectional_attention"):
        raise UnsupportedModel("this Gemma reads both ways, as a model of embeddings does, and writes no text")
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x = program.embed(embeddings, scale=hidden**0.5)
    for layer in range(config["num_hidden_layers"]):
        heads = heads_of(layer) if heads_of else make_heads(config, layer)
        x = _layer(program, config, weights, x, layer, heads)
    norm = weights.vector("model.norm.weight", hidden, offset=config["norm_offset"])
    head = embeddings if config.get("tie_word_embeddings") else weights.matrix("lm_head.weight", vocab, hidden)
    program.logits(x, norm, eps, head, softcap=config.get("final_logit_softcapping") or 0.0)


def make_heads(config: Mapping[str, Any], layer: int) -> Heads:
    """The heads of a layer, as Gemma 2 has them."""
    return Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        scale=config["query_pre_attn_scalar"] ** -0.5,
        rope=rope.from_config(config),
        window=llama.window_of(config, layer),
        softcap=config.get("attn_logit_softcapping") or 0.0,
    )


def _layer(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, heads: Heads) -> Value:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    name = f"model.layers.{layer}"

    def normed(value: Value, norm: str) -> Normed:
        weight = weights.vector(f"{name}.{norm}_layernorm.weight", hidden, offset=config["norm_offset"])
        return program.rms_norm(value, weight, config["rms_norm_eps"])

    q, k, v = program.linear(normed(x, "input"), llama.project_heads(weights, f"{name}.self_attn", heads, hidden))
    attended = program.attention(q, k, v, layer, heads)
    output = llama.project(weights, f"{name}.self_attn.o_proj", hidden, heads.num_heads * heads.head_dim)
    (change,) = program.linear(attended, [output])
    x = program.add(normed(change, "post_attention"), onto=x)

    gate = weights.matrix(f"{name}.mlp.gate_proj.weight", inner, hidden)
    up = weights.matrix(f"{name}.mlp.up_proj.weight", inner, hidden)
    gated = program.gated(normed(x, "pre_feedforward"), gate, up, llama.activation_of(config))
    (change,) = program.linear(gated, [llama.project(weights, f"{name}.mlp.down_proj", hidden, inner)])
    return program.add(normed(change, "post_feedforward"), onto=x)
