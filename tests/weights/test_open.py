"""Opening a model: every kind of file and folder that a person may point at."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from gguf_bytes import write_llama
from kaiwa.errors import KaiwaError, ModelNotFound, UnusableFile
from kaiwa.weights.open import open_checkpoint
from safetensors_folder import CONFIG, entry, index_of, safetensors_bytes, write_folder

ONE_TENSOR = safetensors_bytes({"lm_head.weight": entry([4, 8], 0, 128)}, bytes(128))


def test_a_gguf_file_and_a_folder_with_one(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "model.gguf")
    (tmp_path / "mmproj-model.gguf").write_bytes(b"")
    for opened in (path, tmp_path, str(path)):
        checkpoint = open_checkpoint(opened)
        assert checkpoint.kind == "GGUF"
        assert checkpoint.path == path
        assert checkpoint.num_bytes == 4 * (4 * 8 + 3 * 8 + 2 * 8 * 8 + 2 * 4 * 8 + 3 * 8 * 16)
        checkpoint.release(checkpoint.tensors["model.embed_tokens.weight"])
        checkpoint.close()


def test_a_folder_of_safetensors_or_a_file_in_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", {"model.safetensors": ONE_TENSOR})
    (folder / "generation_config.json").write_text('{"temperature": 0.6, "eos_token_id": [2, 3]}')
    for opened in (folder, folder / "model.safetensors", folder / "config.json"):
        checkpoint = open_checkpoint(opened)
        assert (checkpoint.kind, checkpoint.path, checkpoint.metadata) == ("safetensors", folder, {})
        assert checkpoint.config["head_dim"] == 4
        assert not checkpoint.config.get("rope_interleaved")
        assert checkpoint.generation_config == {"temperature": 0.6, "eos_token_id": [2, 3]}
        assert checkpoint.num_bytes == 128
        checkpoint.release(checkpoint.tensors["lm_head.weight"])
        checkpoint.close()


def test_without_a_generation_config_the_ends_come_from_the_configuration(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_folder(tmp_path, {"model.safetensors": ONE_TENSOR}))
    assert checkpoint.generation_config == {"eos_token_id": 2}
    checkpoint.close()


def test_the_real_model(model_path: Path) -> None:
    checkpoint = open_checkpoint(model_path)
    assert checkpoint.config["rope_interleaved"] is True
    assert checkpoint.config["rms_norm_eps"] == 1e-5
    assert checkpoint.tensors["model.embed_tokens.weight"].shape == (49152, 576)
    assert 2 in checkpoint.generation_config["eos_token_id"]
    checkpoint.close()


def error_of(path: Path) -> KaiwaError:
    with pytest.raises(KaiwaError) as caught:
        open_checkpoint(path)
    return caught.value


@pytest.mark.parametrize("name", ["missing", "x" * 5000, "nul\0byte"])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    assert isinstance(error_of(tmp_path / name), ModelNotFound)


@pytest.mark.parametrize(
    ("content", "expected", "hint"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer", "git lfs pull"),
        (b"\n<!DOCTYPE html><html><body>Log in</body></html>", "a web page", "log in"),
        (b"lmgg" + bytes(100), "GGML file", "GGUF"),
        (b"\x80\x02}q\x00", "Python pickle", "safetensors"),
        (b"\x1f\x8b\x08" + bytes(20), "gzip", "unpack"),
        (b"hello", "begins with b'hell'", "config.json"),
        (b"", "it is empty", "again"),
    ],
)
@pytest.mark.parametrize("name", ["model.gguf", "model.safetensors"])
def test_something_else_under_the_name_of_a_model(
    tmp_path: Path, name: str, content: bytes, expected: str, hint: str
) -> None:
    if name == "model.safetensors":
        write_folder(tmp_path, {})
        if expected.startswith("begins"):
            expected, hint = "its header should have", "again"
    (tmp_path / name).write_bytes(content)
    error = error_of(tmp_path / name)
    assert expected in str(error)
    assert hint in error.hint


def test_a_wheel_or_another_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.whl", "w") as archive:
        archive.writestr("model.gguf", "")
    assert "zip archive" in str(error_of(tmp_path / "model.whl"))


def test_pickles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    write_folder(tmp_path, {"pytorch_model.bin": b"\x80\x02"})
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        error = error_of(path)
        assert "pickle" in str(error)
        assert "save_pretrained" in error.hint


def test_folders_without_one_model(tmp_path: Path) -> None:
    assert "holds no model; it holds nothing" in str(error_of(tmp_path))
    for number in range(7):
        (tmp_path / f"{number}.txt").touch()
    assert "it holds 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more" in str(error_of(tmp_path))
    write_llama(tmp_path / "a.gguf")
    write_llama(tmp_path / "b.gguf")
    assert "holds 2 models: a.gguf, b.gguf" in str(error_of(tmp_path))


def test_weights_without_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(ONE_TENSOR)
    error = error_of(tmp_path)
    assert "no config.json" in str(error)
    assert "download config.json" in error.hint


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"a":1,"a":2}'])
def test_broken_json(tmp_path: Path, name: str, content: bytes) -> None:
    write_folder(tmp_path, {"model.safetensors": ONE_TENSOR, name: content})
    assert str(error_of(tmp_path)).startswith(f"{tmp_path / name} is not a usable {name} file: ")


@pytest.mark.parametrize("value", ["x", -1, True, [2, "x"], [[2]], 0.5])
def test_an_end_that_is_no_token(tmp_path: Path, value: object) -> None:
    write_folder(tmp_path, {"model.safetensors": ONE_TENSOR}, {**CONFIG, "eos_token_id": value})
    assert f"eos_token_id is {value!r}; it must be a token's number" in str(error_of(tmp_path))


def test_a_missing_size_names_its_key(tmp_path: Path) -> None:
    config = {key: value for key, value in CONFIG.items() if key != "hidden_size"}
    write_folder(tmp_path, {"model.safetensors": ONE_TENSOR}, config)
    assert "hidden_size is missing" in str(error_of(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    error = error_of(tmp_path / "model.gguf")
    assert isinstance(error, UnusableFile)
    assert "it is not a file" in str(error)


def test_a_folder_that_only_looks_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "m-00001-of-00002.gguf").mkdir()
    write_folder(tmp_path / "x", {"model.safetensors.index.json": index_of({"a": "a.safetensors"})})
    (tmp_path / "x" / "a.safetensors").mkdir()
    assert "holds no model" in str(error_of(tmp_path / "m-00001-of-00002.gguf"))
    assert "it is not a file" in str(error_of(tmp_path / "x"))


def test_a_file_in_use_can_be_moved_away(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "model.gguf")
    checkpoint = open_checkpoint(path)
    shutil.move(path, tmp_path / "elsewhere.gguf")
    assert bytes(checkpoint.tensors["model.norm.weight"].data) == bytes(32)
    assert json.dumps(dict(checkpoint.config))
    checkpoint.close()
