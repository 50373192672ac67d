"""Rotary position embedding: the frequency of each pair of a head's numbers.

Su et al. 2021, "RoFormer"; the variants as their models' authors published them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import UnsupportedModel, did_you_mean


@dataclass(frozen=True, slots=True)
class Rope:
    """Radians per position for each pair, and what cosines and sines are multiplied by."""

    frequencies: tuple[float, ...]
    magnitude: float = 1.0
    long_frequencies: tuple[float, ...] = ()
    """Take the place of `frequencies` in a sequence of more than `long_after` tokens, for all of its positions."""
    long_after: int = 0


Parameters = Mapping[str, Any]


def from_config(
    config: Mapping[str, Any], *, factors: Sequence[float] | None = None, parameters: Parameters | None = None
) -> Rope:
    """The rotation that a model's configuration asks for, by its `rope_parameters` unless others are given.

    `factors`, where a file brings them (GGUF's `rope_freqs.weight`), divide the frequencies and stand for the
    configuration's own scaling. Raises `UnsupportedModel` for a rope type that is not known.
    """
    parameters = parameters or config["rope_parameters"]
    base = float(parameters["rope_theta"])
    rotated = int(config["head_dim"] * float(parameters.get("partial_rotary_factor", 1.0)) + 1e-6)
    plain = [base ** (-i / rotated) for i in range(0, rotated, 2)]
    if factors is not None:
        return Rope(_divided(plain, factors))
    kind = str(parameters["rope_type"])
    if kind not in _SCALINGS:
        raise UnsupportedModel(f"the rope type {kind!r} is not known", hint=did_you_mean(kind, _SCALINGS))
    return _SCALINGS[kind](plain, parameters, config)


def _default(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    return Rope(tuple(plain))


def _linear(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    return Rope(tuple(frequency / float(parameters["factor"]) for frequency in plain))


def _proportional(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    """The first pairs of a head turn as if all did, and the others not at all (Gemma 4)."""
    dim, base, factor = config["head_dim"], float(parameters["rope_theta"]), float(parameters.get("factor") or 1.0)
    turned = [base ** (-2 * pair / dim) / factor for pair in range(len(plain))]
    return Rope((*turned, *[0.0] * (dim // 2 - len(plain))))


def _dynamic(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    """Frequencies that fall as a sequence grows beyond `max_position_embeddings`, which no context here does."""
    return Rope(tuple(plain))


def _llama3(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    """Long waves are slowed by `factor`, short ones kept, and those between blended (Llama 3.1's reference)."""
    factor = float(parameters["factor"])
    low, high = float(parameters["low_freq_factor"]), float(parameters["high_freq_factor"])
    original = float(parameters["original_max_position_embeddings"])
    scaled = []
    for frequency in plain:
        turns = original * frequency / (2 * math.pi)
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        scaled.append((1 - share) * frequency / factor + share * frequency)
    return Rope(tuple(scaled))


def _yarn(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    """Pairs that turn seldom within the original length are slowed, those that turn often kept (Peng et al. 2023)."""
    factor, original = float(parameters["factor"]), float(parameters["original_max_position_embeddings"])
    num_rotated = 2 * len(plain)

    def pair_that_turns(times: float) -> float:
        wavelength = original / (times * 2 * math.pi)
        return num_rotated * math.log(wavelength) / (2 * math.log(float(parameters["rope_theta"])))

    low = pair_that_turns(float(parameters.get("beta_fast") or 32))
    high = pair_that_turns(float(parameters.get("beta_slow") or 1))
    if parameters.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, num_rotated - 1)
    scaled = []
    for pair, frequency in enumerate(plain):
        share = min(max((pair - low) / (high - low or 0.001), 0.0), 1.0)
        scaled.append((1 - share) * frequency + share * frequency / factor)
    return Rope(tuple(scaled), _yarn_magnitude(factor, parameters))


def _yarn_magnitude(factor: float, parameters: Parameters) -> float:
    def growth(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    if (given := parameters.get("attention_factor")) is not None:
        return float(given)
    numerator, denominator = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if numerator and denominator:
        return growth(float(numerator)) / growth(float(denominator))
    return growth(1.0)


def _longrope(plain: list[float], parameters: Parameters, config: Mapping[str, Any]) -> Rope:
    """A divisor for each frequency, one set for short sequences and one for long ones (Ding et al. 2024)."""
    original = int(parameters["original_max_position_embeddings"])
    growth = float(parameters.get("factor") or config["max_position_embeddings"] / original)
    magnitude = parameters.get("attention_factor")
    if magnitude is None:
        magnitude = math.sqrt(1 + math.log(growth) / math.log(original)) if growth > 1 else 1.0
    short, long = (_divided(plain, parameters.get(key)) for key in ("short_factor", "long_factor"))
    return Rope(short, float(magnitude), long, original)


def _divided(frequencies: list[float], factors: Any) -> tuple[float, ...]:
    is_list = isinstance(factors, Sequence) and all(
        isinstance(factor, int | float) and factor > 0 for factor in factors
    )
    if not is_list or len(factors) != len(frequencies):
        raise UnsupportedModel(
            f"this rope needs {len(frequencies)} factors, numbers above 0; the model has {factors!r}"
        )
    return tuple(frequency / factor for frequency, factor in zip(frequencies, factors, strict=True))


_SCALINGS: dict[str, Callable[[list[float], Parameters, Mapping[str, Any]], Rope]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "proportional": _proportional,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}
