"""Ministral 3 and the text part of Mistral Small 3: a Llama whose queries grow louder as a text grows long.

By `llama_4_scaling_beta`, as in Llama 4, once for each length that the model was first trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Heads, Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    heads_of, rope = llama.make_heads(config, weights), config["rope_parameters"]

    def with_temperature(layer: int) -> Heads:
        return replace(
            heads_of(layer),
            temperature=rope.get("llama_4_scaling_beta") or 0.0,
            temperature_length=rope.get("original_max_position_embeddings") or 0,
        )

    llama.record(program, config, weights, with_temperature)
