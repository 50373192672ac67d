"""Which engine runs a model, and what is said where it is not installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import kaiwa as kw
from gguf_bytes import gguf_bytes
from kaiwa.errors import InvalidOption, MissingExtra, ModelNotFound, UnsupportedModel
from kaiwa.runtime.loading import engine_choice
from kaiwa.weights.description import Description

TINY = Path(__file__).parents[2] / "golden" / "pipeline"
has_torch = importlib.util.find_spec("torch") is not None


@pytest.fixture
def martian(tmp_path: Path) -> Path:
    """A folder of a family that no engine here knows."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "martian"}))
    (tmp_path / "model.safetensors").write_bytes((TINY / "model.safetensors").read_bytes())
    return tmp_path


def test_what_we_know_runs_here(model_path: Path) -> None:
    assert not engine_choice.wants_torch(TINY, "native", None)
    assert not engine_choice.wants_torch(TINY, "auto", "int8")
    assert not engine_choice.wants_llama_cpp(model_path, "auto")
    assert engine_choice.wants_torch(TINY, "torch", None)
    assert engine_choice.wants_llama_cpp(model_path, "llama-cpp")
    with kw.LLM(TINY) as llm:
        assert llm.card.engine.startswith("native")


def test_a_list_names_the_engine() -> None:
    assert engine_choice.choose(Description("GGUF", "llama")) is engine_choice.NATIVE
    assert engine_choice.choose(Description("GGUF", "martian", problem="unknown")) is engine_choice.LLAMA_CPP
    assert engine_choice.choose(Description("safetensors", "martian", problem="unknown")) is engine_choice.TORCH


@pytest.mark.skipif(has_torch, reason="torch is installed")
def test_without_torch_the_error_says_what_to_install(martian: Path) -> None:
    with pytest.raises(
        UnsupportedModel, match="the family 'martian', which the built-in engine does not know"
    ) as caught:
        kw.LLM(martian)
    assert caught.value.hint.startswith("pip install 'kaiwa[torch]'")
    with pytest.raises(MissingExtra, match="the torch engine needs") as missing:
        kw.LLM(TINY, engine="torch")
    assert missing.value.hint == "pip install 'kaiwa[torch]'"
    with pytest.raises(MissingExtra):
        kw.pipeline("text-generation", str(TINY), device_map="cuda")


def test_a_person_who_wants_the_built_in_engine_gets_its_own_words(martian: Path) -> None:
    with pytest.raises(UnsupportedModel, match="the built-in engine knows"):
        kw.LLM(martian, engine="native")


def test_an_architecture_that_stands_late_is_found(tmp_path: Path) -> None:
    path = tmp_path / "late.gguf"
    path.write_bytes(gguf_bytes({"general.name": "late", "general.architecture": "llama"}))
    assert not engine_choice.wants_llama_cpp(path, "auto")


def test_impossible_engines() -> None:
    with pytest.raises(InvalidOption, match="there is no engine 'torhc'"):
        kw.LLM(TINY, engine="torhc")
    with pytest.raises(InvalidOption, match="kv_dtype='float16' is impossible on the torch engine"):
        kw.LLM(TINY, engine="torch", kv_dtype="float16")
    with pytest.raises(ModelNotFound):
        kw.LLM("no-such-model", engine="torch")
