"""Llama 2 and 3, SmolLM2, and what differs from them only by a bias, a norm, a window or a rope.

Touvron et al. 2023; the layer is: norm, attention, add; norm, gated feed-forward, add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native import rope
from kaiwa.engines.native.program import Heads, Normed, Program, Projection, Value
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel, did_you_mean

HeadsOf = Callable[[int], Heads]
"""The heads of a layer."""

FeedForward = Callable[[Program, Mapping[str, Any], Weights, Normed, int], Value]
"""Records what a layer adds to its value, which it sees under a norm."""

ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh"}


def feed_forward(program: Program, config: Mapping[str, Any], weights: Weights, normed: Normed, layer: int) -> Value:
    """Write down the gated feed-forward network of a layer."""
    hidden, inner, name = config["hidden_size"], config["intermediate_size"], f"model.layers.{layer}.mlp"
    gate = weights.matrix(f"{name}.gate_proj.weight", inner, hidden)
    up = weights.matrix(f"{name}.up_proj.weight", inner, hidden)
    gated = program.gated(normed, gate, up, activation_of(config))
    (x,) = program.linear(gated, [project(weights, f"{name}.down_proj", hidden, inner)], onto=normed.value)
    return x


def record(
    program: Program,
    config: Mapping[str, Any],
    weights: Weights,
    heads_of: HeadsOf | None = None,
    *,
    feed_forward: FeedForward = feed_forward,
) -> None:
    """Write the model's steps down. `heads_of` are the heads of each layer, where a family has its own."""
    if config.get("mlp_bias"):
        raise UnsupportedModel("this model has biases in its feed-forward layers, which Kaiwa does not know yet")
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    heads_of = heads_of or make_heads(config, weights)
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x = program.embed(embeddings)
    for layer in range(config["num_hidden_layers"]):
        x = _attention(program, config, weights, x, layer, heads_of(layer))
        weight = weights.vector(f"model.layers.{layer}.post_attention_layernorm.weight", hidden)
        x = feed_forward(program, config, weights, program.rms_norm(x, weight, eps), layer)
    norm = weights.vector("model.norm.weight", hidden)
    head = embeddings if config.get("tie_word_embeddings") else weights.matrix("lm_head.weight", vocab, hidden)
    program.logits(x, norm, eps, head)


def make_heads(config: Mapping[str, Any], weights: Weights) -> HeadsOf:
    """The heads of each layer, as most families have them."""
    heads = Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        scale=config["head_dim"] ** -0.5,
        rope=rope.from_config(config, factors=weights.numbers("rope_freqs.weight")),
        rope_is_interleaved=bool(config.get("rope_interleaved")),
    )
    return lambda layer: replace(heads, window=window_of(config, layer))


def window_of(config: Mapping[str, Any], layer: int) -> int:
    """How many positions a token of this layer sees, its own included; 0 is all."""
    window = config["sliding_window"]
    return int(window) if window is not None and config["layer_types"][layer] == "sliding_attention" else 0


def activation_of(config: Mapping[str, Any]) -> str:
    """What the feed-forward layers' gates go through."""
    name = config.get("hidden_activation") or config["hidden_act"]
    if name not in ACTIVATIONS:
        raise UnsupportedModel(f"the activation {name!r} is not known", hint=did_you_mean(str(name), ACTIVATIONS))
    return ACTIVATIONS[name]


def project(weights: Weights, name: str, rows: int, columns: int) -> Projection:
    """The matrix of this name with its bias, where it has one."""
    return Projection(weights.matrix(f"{name}.weight", rows, columns), weights.optional_vector(f"{name}.bias", rows))


def project_heads(weights: Weights, name: str, heads: Heads, hidden: int) -> list[Projection]:
    """Queries, keys and values."""
    rows, kv_rows = heads.num_heads * heads.head_dim, heads.num_kv_heads * heads.head_dim
    return [
        project(weights, f"{name}.q_proj", rows, hidden),
        project(weights, f"{name}.k_proj", kv_rows, hidden),
        project(weights, f"{name}.v_proj", kv_rows, hidden),
    ]


def _attention(
    program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, heads: Heads
) -> Value:
    hidden, eps, name = config["hidden_size"], config["rms_norm_eps"], f"model.layers.{layer}"
    normed = program.rms_norm(x, weights.vector(f"{name}.input_layernorm.weight", hidden), eps)
    # What decides where a token looks is worth more than 8 bits: a third less divergence for a tenth of the time.
    q, k, v = program.linear(normed, project_heads(weights, f"{name}.self_attn", heads, hidden), is_precise=True)
    attended = program.attention(q, k, v, layer, heads)
    output = project(weights, f"{name}.self_attn.o_proj", hidden, heads.num_heads * heads.head_dim)
    (x,) = program.linear(attended, [output], onto=x)
    return x
