"""Qwen2 and Qwen2.5: a Llama with biases on queries, keys and values.

Its later layers may have a window; published models name one and switch it off (`use_sliding_window`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down."""
    llama.record(program, config, weights)
