"""How models make one vector of a text: what their files say, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gguf_bytes import write_llama
from kaiwa.errors import UnusableFile
from kaiwa.weights.open import open_checkpoint
from kaiwa.weights.pooling import declared_pooling
from safetensors_folder import entry, safetensors_bytes, write_folder

ONE_TENSOR = safetensors_bytes({"lm_head.weight": entry([4, 8], 0, 128)}, bytes(128))


def pooling_of(path: Path) -> str | None:
    checkpoint = open_checkpoint(path)
    try:
        return declared_pooling(checkpoint)
    finally:
        checkpoint.close()


def folder_with(folder: Path, config: object) -> Path:
    write_folder(folder, {"model.safetensors": ONE_TENSOR})
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("number", "name"), [(0, None), (1, "mean"), (2, "cls"), (3, "last"), (4, "rank"), (9, "number 9")]
)
def test_gguf(tmp_path: Path, number: int, name: str | None) -> None:
    assert pooling_of(write_llama(tmp_path / "model.gguf", {"llama.pooling_type": number})) == name


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_lasttoken": True, "word_embedding_dimension": 8}, "last"),
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "mean and cls"),
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": "mean"}, "mean"),
        ({}, None),
    ],
)
def test_sentence_transformers(tmp_path: Path, config: dict[str, Any], name: str | None) -> None:
    assert pooling_of(folder_with(tmp_path, config)) == name


def test_a_chat_model_says_nothing(tmp_path: Path) -> None:
    assert pooling_of(write_llama(tmp_path / "model.gguf")) is None
    assert pooling_of(write_folder(tmp_path / "folder", {"model.safetensors": ONE_TENSOR})) is None


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match=r"1_Pooling.config.json is not a usable pooling configuration"):
        pooling_of(folder_with(tmp_path, [1]))
