"""DeepSeek V3: V2's layers, with experts chosen by biased sigmoids, and by groups before that (DeepSeek-AI 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import deepseek_v2, llama
from kaiwa.engines.native.program import Program, Routing
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    deepseek_v2.record_with(program, config, weights, _routing)


def _routing(config: Mapping[str, Any], weights: Weights, name: str) -> Routing:
    return Routing(
        llama.project(weights, name, config["num_experts"], config["hidden_size"]),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=config["norm_topk_prob"],
        scale=config["routed_scaling_factor"],
        is_sigmoid=True,
        choice_biases=weights.needed_numbers(f"{name}.e_score_correction_bias"),
        num_groups=config["n_group"],
        num_chosen_groups=config["topk_group"],
    )
