"""Every way to scale a rope against what transformers computes: `tests/golden/ropes.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kaiwa.engines.native import rope
from kaiwa.errors import UnsupportedModel
from kaiwa.weights.config import normalize_config

ROPES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "golden" / "ropes.json").read_text())
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "head_dim": 32,
    "intermediate_size": 64,
    "vocab_size": 8,
    "max_position_embeddings": 4096,
}


def make_rope(parameters: dict[str, Any]) -> rope.Rope:
    return rope.from_config(normalize_config({**LLAMA, "rope_parameters": parameters}))


@pytest.mark.parametrize("expected", ROPES, ids=lambda expected: expected["parameters"]["rope_type"])
def test_frequencies_are_those_of_transformers(expected: dict[str, Any]) -> None:
    made = make_rope(expected["parameters"])
    frequencies = made.long_frequencies if expected["is_long"] else made.frequencies
    assert frequencies == pytest.approx(expected["frequencies"], rel=1e-5)
    assert made.magnitude == pytest.approx(expected["magnitude"], rel=1e-6)


def test_every_kind_is_tested() -> None:
    assert {expected["parameters"]["rope_type"] for expected in ROPES} | {"default"} >= {
        "default", "linear", "dynamic", "llama3", "yarn", "longrope"
    }  # fmt: skip


def test_the_original_length_is_the_models_own_where_none_is_given() -> None:
    longrope = next(expected["parameters"] for expected in ROPES if expected["parameters"]["rope_type"] == "longrope")
    without = {key: value for key, value in longrope.items() if key != "original_max_position_embeddings"}
    assert make_rope(longrope).long_after == 1024
    assert make_rope(without).long_after == 4096
    assert make_rope(without).magnitude == 1.0


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"rope_type": "yran", "factor": 4.0}, "the rope type 'yran' is not known"),
        (
            {"rope_type": "longrope", "short_factor": [1.0] * 16},
            "needs 16 factors, numbers above 0; the model has None",
        ),
        ({"rope_type": "longrope", "short_factor": [1.0] * 3, "long_factor": [1.0] * 16}, "needs 16 factors"),
        ({"rope_type": "longrope", "short_factor": [0.0] * 16, "long_factor": [1.0] * 16}, "needs 16 factors"),
    ],
)
def test_a_rope_that_cannot_be_is_refused(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnsupportedModel, match=expected):
        make_rope(parameters)
