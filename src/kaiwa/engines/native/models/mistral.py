"""Mistral: a Llama whose tokens may see a window of the past only (Jiang et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights)
