"""Text beside its references: llama.cpp's ids for its own vocabularies, and transformers' rendering of templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import llama_cpp_models
from conversations import CONVERSATIONS, TOOLS
from kaiwa.errors import TemplateError, UnsupportedFormat
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.weights import gguf
from mixed_lines import mixed_lines
from transformers_text import BOS, EOS, render, smollm2_ids

pytestmark = pytest.mark.oracle

GOLDEN = Path(__file__).parents[1] / "golden" / "text"
VOCABULARIES = (
    *("llama-bpe", "llama-spm", "qwen2", "qwen35", "gpt-2", "phi-3"),
    *("gemma-4", "command-r", "refact", "starcoder", "mpt", "deepseek-llm"),
)
KNOWN_MODELS = {
    "meta-llama-Llama-3.1-8B-Instruct": "Llama 3.1",
    "google-gemma-2-2b-it": "Gemma 2",
    "Qwen-Qwen2.5-7B-Instruct": "Qwen2.5",
    "Qwen-Qwen3-0.6B": "Qwen3",
    "mistralai-Mistral-Nemo-Instruct-2407": "Mistral Nemo",
}
SHAPES: dict[str, dict[str, Any]] = {
    "without tools": {},
    "with tools": {"tools": TOOLS},
    "no answer": {"add_generation_prompt": False},
}


@pytest.fixture(scope="module")
def models(tests_home: Path) -> Path:
    return llama_cpp_models.fetch(tests_home / "llama.cpp")


def tokenizer_of(path: Path) -> Tokenizer:
    file = gguf.read(path)
    try:
        return Tokenizer.from_gguf(file.metadata, path=path)
    finally:
        file.close()


def ours(source: str) -> ChatTemplate:
    texts = ["<|im_start|>", "<|im_end|>", "<|eot_id|>", "<start_of_turn>", "[INST]", "<think>", BOS, EOS]
    tokens = SpecialTokens(SpecialToken(token_id, text, is_control=True) for token_id, text in enumerate(texts))
    return ChatTemplate(source, bos_token=BOS, eos_token=EOS, special_tokens=tokens)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_are_those_of_llama_cpp(name: str, models: Path) -> None:
    path = models / f"ggml-vocab-{name}.gguf"
    tokenizer = tokenizer_of(path)
    texts = Path(f"{path}.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    expected = Path(f"{path}.out").read_text().split("\n")
    assert len(texts) > 40
    for text, ids in zip(texts, expected, strict=False):
        assert tokenizer.encode(text) == [int(token_id) for token_id in ids.split()], text
        assert tokenizer.decode(tokenizer.encode(text)) == text
    for line in mixed_lines():
        assert tokenizer.decode(tokenizer.encode(line)) == line


@pytest.mark.parametrize("name", KNOWN_MODELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_templates_of_known_models_render_as_in_transformers(name: str, shape: str, models: Path) -> None:
    source = (models / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
    taken = 0
    for title, conversation in CONVERSATIONS.items():
        expected = render(source, conversation, **SHAPES[shape])
        if expected is None:
            continue  # what a template refuses we may put in a shape that it takes
        assert ours(source).render(conversation, **SHAPES[shape]).text == expected, title
        taken += 1
    assert taken >= 4


def test_every_template_renders_as_in_transformers(models: Path) -> None:
    paths = sorted((models / "templates").glob("*.jinja"))
    assert len(paths) > 60
    different = []
    for path in paths:
        source = path.read_text(encoding="utf-8")
        model = ours(source)
        for title, conversation in CONVERSATIONS.items():
            for shape, options in SHAPES.items():
                expected = render(source, conversation, **options)
                if expected is None:
                    continue
                try:
                    rendered = model.render(conversation, **options).text
                except TemplateError as error:
                    rendered = str(error)
                if rendered != expected:
                    different.append(f"{path.stem}, {title}, {shape}")
    assert not different


@pytest.mark.parametrize("path", sorted((GOLDEN / "templates").glob("*.jinja")), ids=lambda path: path.stem)
def test_golden_texts_are_what_transformers_renders_today(path: Path) -> None:
    rendered = json.loads((GOLDEN / "rendered" / f"{path.stem}.json").read_text(encoding="utf-8"))
    for title, conversation in CONVERSATIONS.items():
        for shape, options in SHAPES.items():
            assert rendered[title][shape] == render(path.read_text(encoding="utf-8"), conversation, **options)


def test_golden_ids_are_what_the_reference_says_today(model_path: Path) -> None:
    with np.load(GOLDEN / "smollm2_ids.npz") as golden:
        expected = np.split(golden["ids"], np.cumsum(golden["lengths"])[:-1])
    assert smollm2_ids(model_path, mixed_lines()) == [ids.tolist() for ids in expected]


def test_vocabularies_of_other_kinds_are_refused_by_name(models: Path) -> None:
    with pytest.raises(UnsupportedFormat, match="bert"):
        tokenizer_of(models / "ggml-vocab-bert-bge.gguf")
