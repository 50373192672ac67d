"""From what people type to files: names, paths, and every near miss."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kaiwa.errors import ModelNotFound
from kaiwa.weights import hub


def not_found(model: str) -> ModelNotFound:
    with pytest.raises(ModelNotFound) as caught:
        hub.resolve(model)
    return caught.value


def test_the_default_model_is_what_its_row_says(model_path: Path, tests_home: Path) -> None:
    row = hub.MODELS[hub.DEFAULT_MODEL]
    assert model_path == tests_home / "models" / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    with model_path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == row.sha256
    assert model_path.stat().st_size == row.num_bytes


def test_a_model_on_disk_is_found_without_a_word(model_path: Path) -> None:
    def report(progress: object) -> None:
        raise AssertionError(f"nothing should be fetched: {progress}")

    assert hub.resolve("smollm2:135m", on_progress=report) == model_path
    assert hub.installed() == ["smollm2:135m"]


def test_a_home_of_its_own_has_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIWA_HOME", str(tmp_path))
    assert hub.installed() == []


def test_paths_lead_to_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "org" / "model.gguf"
    file.parent.mkdir()
    file.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert hub.resolve(file) == hub.resolve(str(file)) == hub.resolve("~/org/model.gguf") == file
    assert hub.resolve("org/model.gguf") == Path("org/model.gguf")
    assert hub.resolve("org") == Path("org")


def test_a_near_name_is_offered() -> None:
    error = not_found("smolm2:135m")
    assert str(error) == "there is no model 'smolm2:135m', and no file or folder of that name"
    assert error.hint.startswith("did you mean 'smollm2:135m'; a name on the hub is written org/name, ")
    assert not_found("Qwen3-4B").hint.startswith("did you mean 'qwen3:4b'; ")


@pytest.mark.parametrize("name", ["smollm2", "SmolLM2", "smollm2:135", "smollm2:7b"])
def test_of_a_family_all_sizes_are_offered(name: str) -> None:
    assert not_found(name).hint.startswith("known are smollm2:1.7b, smollm2:135m, smollm2:360m; ")


def test_a_far_name_says_where_all_are() -> None:
    assert not_found("xyz").hint.startswith("`kaiwa models --known` lists the short names; ")


def test_a_path_that_is_not_there_offers_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "model-Q4_K.gguf").touch()
    error = not_found(f"{tmp_path}/model-Q4K.gguf")
    assert str(error) == f"there is no file or folder {tmp_path}/model-Q4K.gguf"
    assert error.hint == "did you mean 'model-Q4_K.gguf'?"
    assert "does not exist" in not_found(f"{tmp_path}/models/a.gguf").hint


@pytest.mark.parametrize("name", ["", "x" * 5000, "nul\0byte", "./smollm2:135m", "model.gguf"])
def test_odd_names_are_our_error(name: str) -> None:
    with pytest.raises(ModelNotFound):
        hub.resolve(name)
