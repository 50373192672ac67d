"""Qwen2 and Qwen2.5: a Llama with biases on queries, keys and values.

Its configuration names a sliding window and, by `use_sliding_window`, whether to use it; published models do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiwa.engines.native.models import llama
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel


def record(program: Program, config: Mapping[str, Any], weights: Weights) -> None:
    """Write the model's steps down. Raises `UnsupportedModel` for one that uses its sliding window."""
    if config.get("use_sliding_window"):
        raise UnsupportedModel("this Qwen2 uses a sliding window on some layers, which Kaiwa does not know yet")
    llama.record(program, config, weights)
