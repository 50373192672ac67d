"""What the key-value cache holds: how much memory, and how much of it is lost by rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from distributions import kl_divergence, log_softmax
from driving import continue_greedily, loaded, next_tokens, start
from kaiwa.engines.engine import Slice
from kaiwa.engines.native.options import KV_DTYPES
from kaiwa.errors import InvalidOption
from kaiwa.runtime.loading.planning import cache_bytes_per_token
from kaiwa.weights.open import open_checkpoint

FAMILIES = Path(__file__).parents[2] / "golden" / "families"
PROSE = Path(__file__).parents[2] / "golden" / "smollm2_prose.npz"
NAMES = ["llama-tied", "gemma3", "gpt-oss", "mistral-window", "phi3-crossing", "deepseek-v3"]


@pytest.mark.parametrize("name", NAMES)
def test_bytes_move_logits_little(name: str, isa: str) -> None:
    with np.load(FAMILIES / name / "expected.npz") as file:
        prompt, expected = file["prompt"].tolist(), file["logits"]
    with loaded(FAMILIES / name, kv_dtype="int8") as engine:
        logits = np.asarray(engine.score(prompt))
    error = np.abs(logits - expected)
    assert 0 < error.mean() < 0.05, "of logits that spread by 2"
    assert np.quantile(error, 0.95) < 0.1, "where experts are chosen, a token may come to another one"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kv_dtype", ["int8", "float16"])
def test_text_depends_neither_on_pieces_nor_on_the_batch(name: str, kv_dtype: str, isa: str) -> None:
    prompt = np.random.default_rng(3).integers(4, 200, 60).tolist()
    with loaded(FAMILIES / name, kv_dtype=kv_dtype) as engine:
        first, token = start(engine, prompt)
        text = continue_greedily(engine, first, token, 24)
        assert continue_greedily(engine, *start(engine, prompt, chunk=7), 24) == text
        again, token = start(engine, prompt, chunk=1)
        others = [start(engine, prompt[i:])[0] for i in range(1, 6)]
        together = [token]
        while len(together) < 24:
            batch = [Slice(again, together[-1:]), *(Slice(other, [9]) for other in others)]
            together.append(next_tokens(engine, *batch)[0])
    assert together == text


def test_bytes_on_a_real_model(model_path: Path) -> None:
    with np.load(PROSE) as file:
        prompt = file["prompt"].tolist()
    logits = {}
    for kv_dtype in ("float16", "int8"):
        with loaded(model_path, context_length=1024, kv_dtype=kv_dtype) as engine:
            logits[kv_dtype] = log_softmax(np.asarray(engine.score(prompt)))
    divergence = kl_divergence(logits["float16"], logits["int8"])
    assert divergence.mean() < 0.002, "what a change in the last bit of anything leads to is a third of it"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kv_dtype", sorted(KV_DTYPES))
def test_a_token_takes_what_was_planned(name: str, kv_dtype: str) -> None:
    """Up to the pages of a block of 32."""
    checkpoint = open_checkpoint(FAMILIES / name)
    planned = cache_bytes_per_token(checkpoint.config, KV_DTYPES[kv_dtype])
    checkpoint.close()
    with loaded(FAMILIES / name, kv_dtype=kv_dtype) as engine:
        assert planned <= engine.info.cache_bytes_per_token < planned + 4096 / 32


def test_an_unknown_number_is_refused() -> None:
    with (
        pytest.raises(InvalidOption, match="kv_dtype='int4' is not known"),
        loaded(FAMILIES / "llama-tied", kv_dtype="int4"),
    ):
        pass
