"""Phi-3, 3.5 and 4: a Llama whose projections lie in one matrix, and whose long texts turn by other angles.

Abdin et al. 2024; queries, keys and values are rows of `qkv_proj`, gate and up of `gate_up_proj`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    hidden, inner, head_dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    rows, kv_rows = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    for layer in range(config["num_hidden_layers"]):
        attention, mlp = f"model.layers.{layer}.self_attn", f"model.layers.{layer}.mlp"
        names = [f"{attention}.{name}_proj.weight" for name in "qkv"]
        weights.split(f"{attention}.qkv_proj.weight", dict(zip(names, (rows, kv_rows, kv_rows), strict=True)), hidden)
        halves = {f"{mlp}.gate_proj.weight": inner, f"{mlp}.up_proj.weight": inner}
        weights.split(f"{mlp}.gate_up_proj.weight", halves, hidden)

    parameters = dict(config["rope_parameters"])
    for length in ("short", "long"):  # a GGUF file has them as tensors
        if (factors := weights.numbers(f"rope_factors_{length}.weight")) is not None:
            parameters[f"{length}_factor"] = factors
    llama.record(program, {**config, "rope_parameters": parameters}, weights)
