"""SmolLM3: a Llama that leaves positions out of every fourth layer (Yang et al. 2025, "Rope to Nope")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Heads, Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    heads_of, has_rope = llama.make_heads(config, weights), config["no_rope_layers"]

    def with_or_without(layer: int) -> Heads:
        return heads_of(layer) if has_rope[layer] else replace(heads_of(layer), rope=None)

    llama.record(program, config, weights, with_or_without)
