"""The pipeline on both engines beside transformers' own, for models of several families."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers.utils import logging

import kaiwa as kw
from pipeline_cases import CALLS, FLAGS, PROMPTS
from tiny_models import TINY_MODELS

pytestmark = pytest.mark.oracle
logging.disable_progress_bar()  # a bar leaves a thread behind

TOKENIZER = Path(__file__).parents[1] / "golden" / "pipeline"
FAMILIES = ("llama3-rope", "qwen2", "qwen3", "mistral-window", "gemma3", "smollm3", "qwen3-moe", "qwen3.5")
NAMES = ("text", "texts", "chat", "chats", "prefilled", "prefilled, new turn", "repetition", "suppressed")
LETTERS = {"vocab_size": 99, "bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0}


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a family that converses in printable characters."""
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())
    tiny = TINY_MODELS[request.param]
    replace(tiny, options={**tiny.options, **LETTERS}).build().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    generate = transformers.pipeline("text-generation", model=str(folder), dtype="float32")
    calls = {name: generate(PROMPTS[CALLS[name][0]], **{**FLAGS, **CALLS[name][1]}) for name in NAMES}
    return json.loads(json.dumps(calls))


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_answers_are_those_of_transformers(folder: Path, expected: dict[str, Any], engine: str) -> None:
    with kw.pipeline("text-generation", model=folder, dtype="float32", engine=engine) as generate:
        for name in NAMES:
            prompt, flags = CALLS[name]
            answers = generate(PROMPTS[prompt], **{**FLAGS, **flags})
            assert json.loads(json.dumps(answers)) == expected[name], name
