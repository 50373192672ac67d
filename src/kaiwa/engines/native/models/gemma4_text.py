"""Gemma 4's text: layers of two shapes, the last of which share keys and values, and numbers for each layer and token.

Gemma Team 2026. Five layers with a window (small heads) to one without (large heads, of which a quarter turns). Keys,
queries and values are normed, and scores not scaled. A second table gives each layer some numbers for each token,
which pass a gate at the layer's end. Its mixtures have experts beside the feed-forward network of a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native import experts, rope
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Heads, Normed, Program, Projection, Routing, Value
from kaiwa.engines.native.weights import Weights, vector_of
from kaiwa.errors import UnsupportedModel


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down. Raises `UnsupportedModel` for one that writes no text."""
    if config.get("use_bidirectional_attention") == "all":
        raise UnsupportedModel("this Gemma reads both ways, as a model of embeddings does, and writes no text")
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x = program.embed(embeddings, scale=hidden**0.5)
    extras = _layer_inputs(program, config, weights, x) if config["hidden_size_per_layer_input"] else None
    for layer in range(config["num_hidden_layers"]):
        x = _attention(program, config, weights, x, layer)
        x = _feed_forward(program, config, weights, x, layer)
        if extras is not None:
            x = _take_input(program, config, weights, x, layer, extras)
        if (scalar := weights.numbers(f"model.layers.{layer}.layer_scalar")) is not None:
            x = program.scale(x, scalar[0])
    head = embeddings if config["tie_word_embeddings"] else weights.matrix("lm_head.weight", vocab, hidden)
    norm = weights.vector("model.norm.weight", hidden)
    program.logits(x, norm, eps, head, softcap=config.get("final_logit_softcapping") or 0.0)


def _layer_inputs(program: Program, config: Mapping[str, Any], weights: Weights, x: Value) -> Value:
    """What all layers are given for each token, layer after layer: a table's row and a view of the embedding, averaged.

    The sum of the two is divided by the root of 2, which the scales of both do already. The view is x · weightsᵀ
    / sqrt(hidden), then normed; the division moves into the norm's eps.
    """
    hidden, width, eps = config["hidden_size"], config["hidden_size_per_layer_input"], config["rms_norm_eps"]
    total = config["num_hidden_layers"] * width
    table = weights.matrix("model.embed_tokens_per_layer.weight", config["vocab_size_per_layer_input"], total)
    inputs = program.embed(table, scale=(width / 2) ** 0.5)
    (view,) = program.linear(x, [Projection(weights.matrix("model.per_layer_model_projection.weight", total, hidden))])
    norm = [number * 0.5**0.5 for number in weights.needed_numbers("model.per_layer_projection_norm.weight")]
    return program.add(program.norm_groups(view, vector_of(norm), width, eps * hidden), onto=inputs)


def _attention(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int) -> Value:
    hidden, name = config["hidden_size"], f"model.layers.{layer}.self_attn"
    source = _source_layer(config, layer)
    heads = _heads(config, weights, layer)
    rows, kv_rows = heads.num_heads * heads.head_dim, heads.num_kv_heads * heads.head_dim
    parts = [llama.project(weights, f"{name}.q_proj", rows, hidden)]
    if source == layer:
        parts.append(llama.project(weights, f"{name}.k_proj", kv_rows, hidden))
        if f"{name}.v_proj.weight" in weights:
            parts.append(llama.project(weights, f"{name}.v_proj", kv_rows, hidden))
    q, *stored = program.linear(_normed(program, config, weights, x, layer, "input_layernorm"), parts)
    # Where there is no projection for values, they are the keys as they were before their norm and turn.
    keys, values = (stored[0], stored[-1]) if stored else (None, None)
    attended = program.attention(q, keys, values, source, heads)
    (change,) = program.linear(attended, [llama.project(weights, f"{name}.o_proj", hidden, rows)])
    return program.add(_normed(program, config, weights, change, layer, "post_attention_layernorm"), onto=x)


def _heads(config: Mapping[str, Any], weights: Weights, layer: int) -> Heads:
    name, is_local = f"model.layers.{layer}.self_attn", config["layer_types"][layer] == "sliding_attention"
    dim = config["head_dim" if is_local else "global_head_dim"]
    if is_local:
        turn = rope.from_config(config, parameters=config["local_rope_parameters"])
    else:
        turn = rope.from_config({**config, "head_dim": dim}, factors=weights.numbers("rope_freqs.weight"))
    return Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads" if is_local else "num_global_key_value_heads"],
        head_dim=dim,
        scale=1.0,
        rope=turn,
        window=llama.window_of(config, layer),
        query_norm=weights.vector(f"{name}.q_norm.weight", dim),
        key_norm=weights.optional_vector(f"{name}.k_norm.weight", dim),
        value_norm=vector_of([1.0] * dim),
        norm_eps=config["rms_norm_eps"],
    )


def _source_layer(config: Mapping[str, Any], layer: int) -> int:
    """The layer whose keys and values this one reads: the last of its kind that has its own."""
    num_own, kinds = config["num_hidden_layers"] - config["num_kv_shared_layers"], config["layer_types"]
    if layer < num_own:
        return layer
    return max(other for other in range(num_own) if kinds[other] == kinds[layer])


def _feed_forward(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int) -> Value:
    hidden, inner, name = config["hidden_size"], config["intermediate_size"], f"model.layers.{layer}.mlp"
    if config["use_double_wide_mlp"] and _source_layer(config, layer) != layer:
        inner *= 2
    gate = weights.matrix(f"{name}.gate_proj.weight", inner, hidden)
    up = weights.matrix(f"{name}.up_proj.weight", inner, hidden)
    normed = _normed(program, config, weights, x, layer, "pre_feedforward_layernorm")
    gated = program.gated(normed, gate, up, llama.activation_of(config))
    (change,) = program.linear(gated, [llama.project(weights, f"{name}.down_proj", hidden, inner)])
    if config["enable_moe_block"]:
        change = _with_experts(program, config, weights, x, layer, change)
    return program.add(_normed(program, config, weights, change, layer, "post_feedforward_layernorm"), onto=x)


def _with_experts(
    program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, change: Value
) -> Value:
    """The sum of the network's `change` and what experts make of `x`, each under a norm of its own.

    The router's norm has a scale, and what it makes is divided by the root of the layer's width.
    """
    hidden, eps, name = config["hidden_size"], config["rms_norm_eps"], f"model.layers.{layer}"
    num_experts, width = config["num_experts"], config["moe_intermediate_size"]
    scale = [number * hidden**-0.5 for number in weights.needed_numbers(f"{name}.router.scale")]
    routing = Routing(
        llama.project(weights, f"{name}.router.proj", num_experts, hidden),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=True,
        expert_scales=weights.needed_numbers(f"{name}.router.per_expert_scale"),
        input=program.rms_norm(x, vector_of(scale), eps),
    )
    found = program.experts(
        _normed(program, config, weights, x, layer, "pre_feedforward_layernorm_2"),
        experts.load(weights, f"{name}.experts", num_experts, width, hidden),
        routing,
        activation=llama.activation_of(config),
    )
    norm = weights.vector(f"{name}.post_feedforward_layernorm_1.weight", hidden)
    change = program.norm_groups(change, norm, hidden, eps)
    return program.add(_normed(program, config, weights, found, layer, "post_feedforward_layernorm_2"), onto=change)


def _take_input(
    program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, extras: Value
) -> Value:
    hidden, width, name = config["hidden_size"], config["hidden_size_per_layer_input"], f"model.layers.{layer}"
    (gate,) = program.linear(x, [llama.project(weights, f"{name}.per_layer_input_gate", width, hidden)])
    gated = program.gate(gate, llama.activation_of(config), extras, first=layer * width)
    (change,) = program.linear(gated, [llama.project(weights, f"{name}.per_layer_projection", hidden, width)])
    return program.add(_normed(program, config, weights, change, layer, "post_per_layer_input_norm"), onto=x)


def _normed(program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, norm: str) -> Normed:
    weight = weights.vector(f"model.layers.{layer}.{norm}.weight", config["hidden_size"])
    return program.rms_norm(x, weight, config["rms_norm_eps"])
