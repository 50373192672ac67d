"""Qwen3's mixtures: a Qwen3 with many small feed-forward networks in its layers (Qwen team 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import llama, qwen2_moe, qwen3
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights, qwen3.make_heads(config, weights), feed_forward=qwen2_moe.feed_forward)
