"""GPT-OSS: mixtures with biases, attention sinks, and windows on every other layer (OpenAI 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaiwa.engines.native import experts
from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Expert, Heads, Normed, Program, Routing, Value
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel
from kaiwa.weights.checkpoint import Tensor

SWIGLU = {"swiglu_alpha": 1.702, "swiglu_limit": 7.0}
"""What the kernel of this activation has built in."""


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down. Raises `UnsupportedModel` for another activation than the published models'."""
    for key, known in SWIGLU.items():
        if config.get(key, known) != known:
            raise UnsupportedModel(f"this GPT-OSS has {key} {config[key]}; Kaiwa knows {known}")
    heads_of = llama.make_heads(config, weights)

    def with_sinks(layer: int) -> Heads:
        sinks = weights.vector(f"model.layers.{layer}.self_attn.sinks", config["num_attention_heads"])
        return replace(heads_of(layer), sinks=sinks)

    llama.record(program, config, weights, with_sinks, feed_forward=_mixture)


def _mixture(program: Program, config: Mapping[str, Any], weights: Weights, normed: Normed, layer: int) -> Value:
    hidden, num_experts, name = config["hidden_size"], config["num_experts"], f"model.layers.{layer}.mlp"
    routing = Routing(
        llama.project(weights, f"{name}.router", num_experts, hidden),
        num_chosen=config["num_experts_per_tok"],
        is_renormalized=True,  # as the softmax over the chosen alone, which OpenAI's code takes
    )
    loaded = _load(weights, f"{name}.experts", num_experts, config["intermediate_size"], hidden)
    return program.experts(normed, loaded, routing, activation="clamped_silu", onto=normed.value)


def _load(weights: Weights, name: str, num_experts: int, width: int, hidden: int) -> list[Expert]:
    """As `experts.load`, for matrices that lie on their side, gates taking turns with what they multiply."""
    if f"{name}.gate_up_proj" not in weights:
        return experts.load(weights, name, num_experts, width, hidden)
    pairs = weights.stack(
        f"{name}.gate_up_proj", (num_experts, hidden, 2 * width), lambda part: _in_turns(part.transposed())
    )
    biases = weights.stack(f"{name}.gate_up_proj_bias", (num_experts, 2 * width), _in_turns)
    downs = weights.stack(f"{name}.down_proj", (num_experts, width, hidden), lambda part: [part.transposed()])
    down_biases = weights.stack(f"{name}.down_proj_bias", (num_experts, hidden))
    return experts.zipped(pairs, downs, biases, down_biases)


def _in_turns(part: Tensor) -> list[Tensor]:
    return [part.rows(0, part.shape[0], 2), part.rows(1, part.shape[0], 2)]
