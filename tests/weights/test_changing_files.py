"""A model's file that changes between opening and loading: an error, and not the end of the process."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from gguf_reference import write_checkpoint
from kaiwa.engines.native.engine import load
from kaiwa.errors import UnusableFile
from kaiwa.weights.open import open_checkpoint

TINY = Path(__file__).parents[1] / "golden" / "families" / "llama-tied"


@pytest.fixture(params=["GGUF", "safetensors"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """What to open, and the file that holds its weights."""
    if request.param == "GGUF":
        write_checkpoint(TINY, tmp_path / "model.gguf")
        return tmp_path / "model.gguf", tmp_path / "model.gguf"
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    return folder, folder / "model.safetensors"


def test_a_file_cut_short_while_it_is_mapped(model: tuple[Path, Path]) -> None:
    path, weights = model
    with closing(open_checkpoint(path)) as checkpoint:
        os.truncate(weights, weights.stat().st_size // 2)
        with pytest.raises(UnusableFile, match="became shorter while it was in use") as refusal:
            load(checkpoint)
        assert refusal.value.hint


def test_a_file_replaced_by_another_leaves_the_opened_one_whole(model: tuple[Path, Path], tmp_path: Path) -> None:
    path, weights = model
    with closing(open_checkpoint(path)) as checkpoint:
        other = tmp_path / "other"
        other.write_bytes(b"something else")
        other.replace(weights)
        engine = load(checkpoint)
        assert engine.info.family == "llama"
        engine.shutdown()
