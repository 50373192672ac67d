"""A model whose numbers grow beyond what floats hold: an error of ours, and an engine that goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from driving import GREEDY, loaded
from kaiwa.engines.engine import Slice
from kaiwa.errors import NumericalError

TINY = Path(__file__).parents[2] / "golden" / "families" / "llama-tied"


def test_infinite_logits_are_an_error_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] = tensors["model.norm.weight"] * 1e38
    save_file(tensors, folder / "model.safetensors")
    with loaded(folder) as engine:
        sequence = engine.open()
        engine.configure(sequence, GREEDY)
        with pytest.raises(NumericalError, match="NaN or infinite") as failure:
            engine.step([Slice(sequence, [5, 6, 7])])
        assert failure.value.hint
        assert engine.length(sequence) == 3
