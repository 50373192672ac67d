"""Rotary position embedding: the frequency of each pair of a head's numbers.

Su et al. 2021, "RoFormer"; the variants as their models' authors published them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import UnsupportedModel, did_you_mean


@dataclass(frozen=True, slots=True)
class Rope:
    """Radians per position for each pair, and what cosines and sines are multiplied by."""

    frequencies: tuple[float, ...]
    magnitude: float = 1.0


def from_config(config: Mapping[str, Any], *, factors: Sequence[float] | None = None) -> Rope:
    """The rotation that a model's configuration asks for.

    `factors`, where a file brings them (GGUF's `rope_freqs.weight`), divide the frequencies and stand for the
    configuration's own scaling. Raises `UnsupportedModel` for a rope type that is not known.
    """
    parameters: Mapping[str, Any] = config.get("rope_parameters") or {}
    base = float(config.get("rope_theta") or parameters.get("rope_theta") or 10_000.0)
    rotated = int(config["head_dim"] * float(parameters.get("partial_rotary_factor", 1.0)))
    plain = [base ** (-2 * i / rotated) for i in range(rotated // 2)]
    if factors is not None:
        return Rope(tuple(frequency / factor for frequency, factor in zip(plain, factors, strict=True)))
    kind = str(parameters.get("rope_type", "default"))
    if kind not in _SCALINGS:
        raise UnsupportedModel(f"the rope type {kind!r} is not known", hint=did_you_mean(kind, _SCALINGS))
    return Rope(tuple(_SCALINGS[kind](plain, parameters)))


def _default(plain: list[float], parameters: Mapping[str, Any]) -> list[float]:
    return plain


def _linear(plain: list[float], parameters: Mapping[str, Any]) -> list[float]:
    return [frequency / float(parameters["factor"]) for frequency in plain]


def _llama3(plain: list[float], parameters: Mapping[str, Any]) -> list[float]:
    """Long waves are slowed by `factor`, short ones kept, and those between blended (Llama 3.1's reference)."""
    factor = float(parameters["factor"])
    low, high = float(parameters["low_freq_factor"]), float(parameters["high_freq_factor"])
    original = float(parameters["original_max_position_embeddings"])
    scaled = []
    for frequency in plain:
        turns = original * frequency / (2 * math.pi)
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        scaled.append((1 - share) * frequency / factor + share * frequency)
    return scaled


_SCALINGS = {"default": _default, "linear": _linear, "llama3": _llama3}
