"""Gemma 3's text: a Gemma 2 with norms on queries and keys for caps, and five layers with a window to one without.

Gemma Team 2025. The layers with a window turn faster than the others (`local_rope_parameters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native import rope
from kaiwa.engines.native._native import Vector
from kaiwa.engines.native.models import gemma2
from kaiwa.engines.native.program import Heads, Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    local = rope.from_config(config, parameters=config["local_rope_parameters"])

    def heads_of(layer: int) -> Heads:
        heads, name = gemma2.make_heads(config, layer), f"model.layers.{layer}.self_attn"

        def norm(which: str) -> Vector:
            return weights.vector(f"{name}.{which}_norm.weight", heads.head_dim, offset=config["norm_offset"])

        return replace(
            heads,
            rope=local if heads.window else heads.rope,
            softcap=0.0,
            query_norm=norm("q"),
            key_norm=norm("k"),
            norm_eps=config["rms_norm_eps"],
        )

    gemma2.record(program, config, weights, heads_of)
