"""DeepSeek V2: attention whose keys and values are made of one small latent, and many small experts (DeepSeek-AI 2024).

A part of each query is turned, as is one part of the key that all heads share; the rest is not. The cache holds whole
keys and values: more memory than the latent takes, and no products to make them of it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native import experts, rope
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Heads, Normed, Part, Program, Projection, Routing, Value
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel

LATENT_EPS = 1e-6
"""Of the norms inside of attention, whatever the configuration says of the others."""

RoutingOf = Callable[[Mapping[str, Any], Weights, str], Routing]
"""How the experts under a name are chosen, without the shared ones."""


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    record_with(program, config, weights, _routing)


def record_with(program: Program, config: Mapping[str, Any], weights: Weights, routing_of: RoutingOf) -> None:
    """Write a model's steps down, whose experts are chosen in this way."""
    if config.get("attention_bias") or config.get("mlp_bias"):
        raise UnsupportedModel("this DeepSeek has biases, which Kaiwa does not know yet", hint='engine="torch" runs it')
    if config["rope_parameters"].get("llama_4_scaling_beta"):
        raise UnsupportedModel(
            "queries of this DeepSeek grow with their position (llama_4_scaling_beta), which Kaiwa does not know yet",
            hint='engine="torch" runs it from safetensors, engine="llama-cpp" from GGUF',
        )
    hidden, vocab, eps = config["hidden_size"], config["vocab_size"], config["rms_norm_eps"]
    embeddings = weights.matrix("model.embed_tokens.weight", vocab, hidden)
    x, heads = program.embed(embeddings), _heads(config)
    for layer in range(config["num_hidden_layers"]):
        x = _attention(program, config, weights, x, layer, heads)
        weight = weights.vector(f"model.layers.{layer}.post_attention_layernorm.weight", hidden)
        normed = program.rms_norm(x, weight, eps)
        is_dense = layer < config["first_k_dense_replace"]
        if is_dense:
            x = llama.feed_forward(program, config, weights, normed, layer)
        else:
            x = _mixture(program, config, weights, normed, layer, routing_of)
    head = embeddings if config["tie_word_embeddings"] else weights.matrix("lm_head.weight", vocab, hidden)
    program.logits(x, weights.vector("model.norm.weight", hidden), eps, head)


def _heads(config: Mapping[str, Any]) -> Heads:
    turn = rope.from_config({**config, "head_dim": config["qk_rope_head_dim"]})
    return Heads(
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_attention_heads"],
        head_dim=config["head_dim"],
        scale=config["head_dim"] ** -0.5 * _growth(config["rope_parameters"]) ** 2,
        rope=turn,
        rope_is_interleaved=bool(config.get("rope_interleave", True)),
    )


def _growth(parameters: Mapping[str, Any]) -> float:
    """What queries and keys grow by where a rope is stretched, beside what the rope itself does to its part of them."""
    weight, factor = float(parameters.get("mscale_all_dim") or 0), float(parameters.get("factor") or 1)
    return 0.1 * weight * math.log(factor) + 1 if parameters["rope_type"] != "default" and factor > 1 else 1.0


def _attention(
    program: Program, config: Mapping[str, Any], weights: Weights, x: Value, layer: int, heads: Heads
) -> Value:
    hidden, name = config["hidden_size"], f"model.layers.{layer}.self_attn"
    count, dim, turned, rank = heads.num_heads, heads.head_dim, config["qk_rope_head_dim"], config["kv_lora_rank"]
    plain, value_dim = dim - turned, config["v_head_dim"]
    norm = weights.vector(f"model.layers.{layer}.input_layernorm.weight", hidden)
    weights.split(
        f"{name}.kv_a_proj_with_mqa.weight", {f"{name}.latent.weight": rank, f"{name}.turned.weight": turned}, hidden
    )
    query_rank = config.get("q_lora_rank")
    first = ("q_proj", count * dim) if query_rank is None else ("q_a_proj", query_rank)
    parts = [("latent", rank), ("turned", turned), first]
    latent, key, q = program.linear(
        program.rms_norm(x, norm, config["rms_norm_eps"]),
        [_project(weights, f"{name}.{part}", rows, hidden) for part, rows in parts],
        is_precise=True,
    )
    if query_rank is not None:
        normed = program.rms_norm(q, weights.vector(f"{name}.q_a_layernorm.weight", query_rank), LATENT_EPS)
        (q,) = program.linear(normed, [_project(weights, f"{name}.q_b_proj", count * dim, query_rank)], is_precise=True)
    normed = program.rms_norm(latent, weights.vector(f"{name}.kv_a_layernorm.weight", rank), LATENT_EPS)
    keys_part, values_part = _keys_and_values(program, weights, normed, name, count, (plain, value_dim, rank))
    # What turns comes first in a head.
    queries = program.regroup([Part(q, dim, plain, turned), Part(q, dim, 0, plain)], count, dim)
    keys = program.regroup([Part(key, 0, 0, turned), keys_part], count, dim)
    values = program.regroup([values_part], count, dim)
    attended = program.attention(queries, keys, values, layer, heads)
    found = program.regroup([Part(attended, dim, 0, value_dim)], count, value_dim)
    (x,) = program.linear(found, [_project(weights, f"{name}.o_proj", hidden, count * value_dim)], onto=x)
    return x


def _keys_and_values(
    program: Program, weights: Weights, latent: Normed, name: str, count: int, sizes: tuple[int, int, int]
) -> tuple[Part, Part]:
    """What each head makes of the latent: the part of its key that does not turn, and its value."""
    plain, value_dim, rank = sizes
    if f"{name}.kv_b_proj.weight" in weights:
        both = plain + value_dim
        (kv,) = program.linear(latent, [_project(weights, f"{name}.kv_b_proj", count * both, rank)], is_precise=True)
        return Part(kv, both, 0, plain), Part(kv, both, plain, value_dim)
    # GGUF files since 2025, for engines that bring queries to the latent instead
    halves = [
        Projection(weights.joined(f"{name}.k_b_proj.weight", (count, rank, plain), is_turned=True)),
        Projection(weights.joined(f"{name}.v_b_proj.weight", (count, value_dim, rank))),
    ]
    keys, values = program.linear(latent, halves, is_precise=True)
    return Part(keys, plain, 0, plain), Part(values, value_dim, 0, value_dim)


def _mixture(
    program: Program, config: Mapping[str, Any], weights: Weights, normed: Normed, layer: int, routing_of: RoutingOf
) -> Value:
    hidden, width, name = config["hidden_size"], config["moe_intermediate_size"], f"model.layers.{layer}.mlp"
    loaded = experts.load(weights, f"{name}.experts", config["num_experts"], width, hidden)
    shared = experts.one(weights, f"{name}.shared_experts", width * config["n_shared_experts"], hidden)
    routing = replace(routing_of(config, weights, f"{name}.gate"), shared=[shared])
    return program.experts(normed, loaded, routing, activation=llama.activation_of(config), onto=normed.value)


def _routing(config: Mapping[str, Any], weights: Weights, name: str) -> Routing:
    in_groups = config["topk_method"] == "group_limited_greedy"
    return Routing(
        _project(weights, name, config["num_experts"], config["hidden_size"]),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=False,
        scale=config["routed_scaling_factor"],
        num_groups=config["n_group"] if in_groups else 1,
        num_chosen_groups=config["topk_group"] if in_groups else 1,
    )


def _project(weights: Weights, name: str, rows: int, columns: int) -> Projection:
    return Projection(weights.matrix(f"{name}.weight", rows, columns))
