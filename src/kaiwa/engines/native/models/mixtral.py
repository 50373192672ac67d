"""Mixtral: a Mistral with eight feed-forward networks in each layer, of which a token uses two (Jiang et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native import experts
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Normed, Program, Routing, Value
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights, feed_forward=_mixture)


def _mixture(program: Program, config: Mapping[str, Any], weights: Weights, normed: Normed, layer: int) -> Value:
    hidden, num_experts = config["hidden_size"], config["num_experts"]
    name = f"model.layers.{layer}.block_sparse_moe"
    routing = Routing(
        llama.project(weights, f"{name}.gate", num_experts, hidden),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=True,
    )
    width = config["intermediate_size"]
    loaded = experts.load(weights, f"{name}.experts", num_experts, width, hidden, names=("w1", "w3", "w2"))
    return program.experts(normed, loaded, routing, activation=llama.activation_of(config), onto=normed.value)
