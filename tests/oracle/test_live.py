"""The built-in engine beside transformers, on weights that no golden file has seen and on the default model."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from distributions import kl_divergence, log_softmax
from driving import continue_greedily, loaded, start
from gguf_reference import write_checkpoint
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.weights.open import open_checkpoint
from smollm2 import load_reference, tokenize
from tiny_models import NUM_GREEDY_TOKENS, TINY_MODELS, logits_of, make_prompt

GOLDEN = Path(__file__).parents[1] / "golden"
NEAR_TIE = 2e-3
"""How far below the best logit a greedy choice may lie: both logits may be off by 1e-3."""

pytestmark = pytest.mark.oracle
logging.disable_progress_bar()  # a bar leaves a thread behind


@pytest.mark.parametrize("name", TINY_MODELS)
@pytest.mark.parametrize("seed", [1001, 1002])
def test_new_random_models(name: str, seed: int, tmp_path: Path) -> None:
    model = TINY_MODELS[name].build(seed=seed)
    model.save_pretrained(tmp_path)
    prompt = make_prompt(model.config.vocab_size, seed)
    with loaded(tmp_path) as engine:
        logits = np.asarray(engine.score(prompt.tolist()))
        text = continue_greedily(engine, *start(engine, prompt.tolist(), chunk=9), NUM_GREEDY_TOKENS)
    np.testing.assert_allclose(logits, logits_of(model, prompt), rtol=0, atol=1e-3)

    # One beginning after the other, since some ropes turn a long text otherwise than they did its beginning.
    beginnings = [np.append(prompt, np.array(text[:length], dtype=np.int32)) for length in range(len(text))]
    theirs = np.stack([logits_of(model, beginning)[-1] for beginning in beginnings])
    behind = theirs.max(axis=-1) - theirs[np.arange(len(text)), text]
    assert behind.max() < NEAR_TIE


@pytest.mark.parametrize("name", ["deepseek-v2", "deepseek-v3"])
@pytest.mark.parametrize("is_old", [False, True])
def test_gguf_of_new_random_deepseeks(name: str, is_old: bool, tmp_path: Path) -> None:
    """Their mscale is that of published models, since the file has no key for another."""
    tiny = TINY_MODELS[name]
    if rope := tiny.options.get("rope_parameters"):
        tiny = replace(tiny, options={**tiny.options, "rope_parameters": {**rope, "mscale": rope["mscale_all_dim"]}})
    model = tiny.build(seed=1003)
    model.save_pretrained(tmp_path)
    write_checkpoint(tmp_path, tmp_path / "model.gguf", is_old=is_old)
    prompt = make_prompt(model.config.vocab_size, 1003)
    with loaded(tmp_path / "model.gguf") as engine:
        logits = np.asarray(engine.score(prompt.tolist()))
    np.testing.assert_allclose(logits, logits_of(model, prompt), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", TINY_MODELS)
def test_golden_files_are_what_transformers_says_today(name: str) -> None:
    folder = GOLDEN / "families" / name
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with np.load(folder / "expected.npz") as expected:
        np.testing.assert_allclose(logits_of(model, expected["prompt"]), expected["logits"], rtol=0, atol=1e-4)


def test_smollm2_reads_prose_as_transformers_does(model_path: Path) -> None:
    text = (GOLDEN / "prose.txt").read_text(encoding="utf-8")
    prompt = tokenize(model_path, text)
    assert len(prompt) > 500
    with closing(open_checkpoint(model_path)) as checkpoint:
        assert Tokenizer.from_gguf(checkpoint.metadata).encode(text) == prompt.tolist()
    theirs = log_softmax(logits_of(load_reference(model_path), prompt))
    with loaded(model_path, context_length=1024) as engine:
        ours = log_softmax(np.asarray(engine.score(prompt.tolist())))
    assert kl_divergence(theirs, ours).mean() < 0.005
    assert (theirs.argmax(axis=-1) == ours.argmax(axis=-1)).mean() > 0.97
