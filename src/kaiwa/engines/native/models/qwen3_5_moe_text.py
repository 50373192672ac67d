"""Qwen3.5's mixtures, their text part: a Qwen3.5 with many small feed-forward networks in its layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import qwen2_moe, qwen3_5_text
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    qwen3_5_text.record(program, config, weights, feed_forward=qwen2_moe.feed_forward)
