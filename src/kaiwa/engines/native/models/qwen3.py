"""Qwen3: a Llama that norms each head of its queries and keys before it turns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Heads, Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights, make_heads(config, weights))


def make_heads(config: Mapping[str, Any], weights: Weights) -> llama.HeadsOf:
    """The heads of each layer, with their norms."""
    heads_of, head_dim = llama.make_heads(config, weights), config["head_dim"]

    def with_norms(layer: int) -> Heads:
        name = f"model.layers.{layer}.self_attn"
        return replace(
            heads_of(layer),
            query_norm=weights.vector(f"{name}.q_norm.weight", head_dim),
            key_norm=weights.vector(f"{name}.k_norm.weight", head_dim),
            norm_eps=config["rms_norm_eps"],
        )

    return with_norms
