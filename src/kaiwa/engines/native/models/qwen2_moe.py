"""Qwen2's mixtures: some layers have many small feed-forward networks, and one more that every token uses.

`decoder_sparse_step` and `mlp_only_layers` say which layers are plain (Qwen team 2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native import experts
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Normed, Program, Routing, Value
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights, feed_forward=feed_forward)


def feed_forward(program: Program, config: Mapping[str, Any], weights: Weights, normed: Normed, layer: int) -> Value:
    """Write down a layer's mixture, or its plain network where it has one."""
    if layer in config["mlp_only_layers"] or (layer + 1) % config["decoder_sparse_step"] != 0:
        return llama.feed_forward(program, config, weights, normed, layer)
    hidden, num_experts, name = config["hidden_size"], config["num_experts"], f"model.layers.{layer}.mlp"
    routing = Routing(
        llama.project(weights, f"{name}.gate", num_experts, hidden),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=config["norm_topk_prob"],
    )
    if (width := config.get("shared_expert_intermediate_size")) is not None:
        routing = replace(
            routing,
            shared=[experts.one(weights, f"{name}.shared_expert", width, hidden)],
            shared_gate=llama.project(weights, f"{name}.shared_expert_gate", 1, hidden),
        )
    loaded = experts.load(weights, f"{name}.experts", num_experts, config["moe_intermediate_size"], hidden)
    return program.experts(normed, loaded, routing, activation=llama.activation_of(config), onto=normed.value)
