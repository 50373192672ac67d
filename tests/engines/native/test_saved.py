"""A sequence as bytes: it comes back as it was, and nothing that is not one comes in."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from driving import GREEDY, continue_greedily, loaded, next_token, start
from kaiwa.errors import OutOfMemory, UnusableFile

FAMILIES = Path(__file__).parents[2] / "golden" / "families"
LLAMA = FAMILIES / "llama-tied"
PROMPT = [int(token) for token in np.random.default_rng(5).integers(4, 256, 70)]


@pytest.mark.parametrize("name", ["llama-tied", "phi3-crossing", "qwen3.5", "gemma3"])
@pytest.mark.parametrize(("num_tokens", "kv_dtype"), [(1, None), (32, "int8"), (70, "float16")])
def test_a_restored_sequence_goes_on(name: str, num_tokens: int, kv_dtype: str | None) -> None:
    prompt = PROMPT[:num_tokens]
    with loaded(FAMILIES / name, kv_dtype=kv_dtype) as engine:
        sequence, token = start(engine, prompt)
        saved = engine.save(sequence)
        expected = continue_greedily(engine, sequence, token, 30)
    with loaded(FAMILIES / name, kv_dtype=kv_dtype) as engine:
        restored = engine.restore(saved)
        assert engine.length(restored) == num_tokens
        assert engine.save(restored) == saved
        engine.configure(restored, GREEDY, prompt_ids=prompt)
        assert continue_greedily(engine, restored, token, 30) == expected


def test_checkpoints_come_back_too() -> None:
    other = [*PROMPT[:-5], 9, 8]
    with loaded(FAMILIES / "qwen3.5") as engine:
        expected = continue_greedily(engine, *start(engine, other), 20)
        sequence, _ = start(engine, PROMPT)
        kept = engine.keepable(sequence, len(PROMPT) - 5)
        assert kept > 0
        restored = engine.restore(engine.save(sequence))
        engine.close(sequence)
        assert engine.keepable(restored, len(PROMPT) - 5) == kept
        engine.truncate(restored, len(PROMPT) - 5)
        engine.configure(restored, GREEDY, prompt_ids=other)
        assert continue_greedily(engine, restored, next_token(engine, restored, other[kept:]), 20) == expected


@pytest.fixture(scope="module")
def saved() -> bytes:
    with loaded(LLAMA) as engine:
        return engine.save(start(engine, PROMPT)[0])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_changed_byte_goes_unnoticed(saved: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, 72) | st.integers(0, len(saved) - 1))
    changed = bytearray(saved)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert refusal(bytes(changed))


@pytest.mark.parametrize("num_bytes", [0, 7, 8, 40, 59, 60, 67, 68, 1000, -8, -1])
def test_nor_do_missing_ones(saved: bytes, num_bytes: int) -> None:
    assert refusal(saved[:num_bytes])


def refusal(damaged: bytes) -> str:
    """By which words a model refuses it; it holds nothing more after."""
    with loaded(LLAMA) as engine:
        free = engine.num_free_tokens()
        with pytest.raises(UnusableFile, match="what was saved is not a usable sequence file") as refused:
            engine.restore(damaged)
        assert engine.num_free_tokens() == free
    return refused.value.reason


def test_another_model_or_another_option_refuses_it(saved: bytes, tmp_path: Path) -> None:
    weights = load_file(LLAMA / "model.safetensors")
    shutil.copytree(LLAMA, tmp_path / "tuned")
    weights["model.layers.1.mlp.down_proj.weight"][-1, -1] += 0.001
    save_file(weights, tmp_path / "tuned" / "model.safetensors")
    for folder, options in ((tmp_path / "tuned", {}), (LLAMA, {"kv_dtype": "float16"})):
        with loaded(folder, **options) as engine, pytest.raises(UnusableFile, match="another model"):
            engine.restore(saved)
    with loaded(LLAMA, context_length=64) as engine, pytest.raises(UnusableFile, match="not what 70 tokens take"):
        engine.restore(saved)


def test_no_room_for_it_is_not_its_fault(saved: bytes) -> None:
    with loaded(LLAMA, context_length=80, cache_tokens=80) as engine:
        start(engine, PROMPT[:20])
        free = engine.num_free_tokens()
        with pytest.raises(OutOfMemory):
            engine.restore(saved)
        assert engine.num_free_tokens() == free
