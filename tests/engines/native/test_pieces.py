"""Prompts and answers: what a token comes to depends on which of the two it is in, and on nothing else of a step."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from driving import GREEDY, loaded
from kaiwa.engines.engine import Engine, Sampled, Slice
from unquantized import bfloat16, write_bfloat16

FAMILIES = Path(__file__).parents[2] / "golden" / "families"
NAMES = ["llama-tied", "gemma3", "mistral-window", "phi3-crossing", "qwen2-moe", "qwen3.5"]
RECURRENT = ("qwen3.5",)
PROMPT = [int(token) for token in np.random.default_rng(7).integers(4, 256, 75)]
NUM_BEST = 8


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A family's golden model with its weights rounded to bfloat16."""
    golden = FAMILIES / str(request.param)
    return write_folder(
        tmp_path,
        golden,
        {key: value for path in golden.glob("*.safetensors") for key, value in load_file(path).items()},
    )


def write_folder(folder: Path, golden: Path, weights: dict[str, np.ndarray], **config: Any) -> Path:
    """A model in bfloat16, like the golden one but for some of its weights and its configuration."""
    write_bfloat16(folder / "model.safetensors", {name: bfloat16(tensor) for name, tensor in weights.items()})
    known = json.loads((golden / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(known | config))
    return folder


def begin(engine: Engine, prompt: Sequence[int], pieces: Sequence[int] = ()) -> tuple[int, Sampled]:
    """A sequence that has read the prompt, cut at these places, and what is sampled after it."""
    sequence = engine.open()
    engine.configure(sequence, GREEDY, prompt_ids=prompt)
    cuts = [0, *sorted(pieces), len(prompt)]
    for first, end in itertools.pairwise(cuts[:-1]):
        engine.step([Slice(sequence, prompt[first:end], sample=False)])
    return sequence, step(engine, sequence, prompt[cuts[-2] :])


def step(engine: Engine, sequence: int, token_ids: Sequence[int], *, num_guesses: int = 0) -> Sampled:
    """What is sampled after some more tokens, with the logits' bits as far as they show."""
    (sampled,) = engine.step([Slice(sequence, token_ids, num_guesses=num_guesses, num_logprobs=NUM_BEST)])
    assert sampled is not None
    return sampled


def write(engine: Engine, sequence: int, first: Sampled, num_tokens: int) -> list[Sampled]:
    """`first` and what follows it, token by token."""
    said = [first]
    while len(said) < num_tokens:
        said.append(step(engine, sequence, said[-1].token_ids))
    return said


@pytest.mark.parametrize("folder", NAMES, indirect=True)
def test_a_prompt_is_the_same_in_pieces_and_beside_others(folder: Path, isa: str) -> None:
    rng = random.Random(1)
    with loaded(folder) as engine:
        sequence, whole = begin(engine, PROMPT)
        expected = write(engine, sequence, whole, 6)
        for _ in range(3):
            _, sampled = begin(engine, PROMPT, rng.sample(range(1, len(PROMPT)), 5))
            assert sampled == whole
        _, one_by_one = begin(engine, PROMPT, range(1, len(PROMPT)))
        assert one_by_one == whole

        # Another prompt is read, and another answer written, in the same steps.
        writer, said = begin(engine, PROMPT[3:40])
        reader, other = engine.open(), engine.open()
        engine.configure(reader, GREEDY, prompt_ids=PROMPT)
        engine.configure(other, GREEDY, prompt_ids=PROMPT[::-1])
        for first, end in ((0, 20), (20, len(PROMPT))):
            answer, last, _ = engine.step(
                [
                    Slice(writer, said.token_ids),
                    Slice(reader, PROMPT[first:end], sample=end == len(PROMPT), num_logprobs=NUM_BEST),
                    Slice(other, PROMPT[::-1][first:end], sample=False),
                ]
            )
            assert answer is not None
            said = answer
        assert last == whole
        assert write(engine, reader, whole, 6) == expected


@pytest.mark.parametrize("folder", [name for name in NAMES if name not in RECURRENT], indirect=True)
def test_an_answer_is_the_same_with_guesses_and_after_a_pause(folder: Path, isa: str) -> None:
    with loaded(folder) as engine:
        sequence, first = begin(engine, PROMPT)
        expected = write(engine, sequence, first, 12)
        tokens = [sampled.token_ids[0] for sampled in expected]
        engine.truncate(sequence, len(PROMPT))
        guessed = step(engine, sequence, [*tokens[:8], 3], num_guesses=8)
        assert guessed.token_ids == tuple(tokens[1:9])
        assert guessed.logprobs == tuple(sampled.logprobs[0] for sampled in expected[1:9])

        # What has to pause is read again from its beginning, prompt and answer in one slice.
        engine.truncate(sequence, 0)
        assert step(engine, sequence, [*PROMPT, *tokens[:10]]) == expected[10]


@pytest.mark.parametrize("folder", NAMES, indirect=True)
def test_an_answer_that_becomes_a_prompt_moves_by_a_rounding(folder: Path, isa: str) -> None:
    with loaded(folder) as engine:
        sequence, first = begin(engine, PROMPT)
        said = write(engine, sequence, first, 12)
        text = [*PROMPT, *(sampled.token_ids[0] for sampled in said)]
        _, again = begin(engine, text[:-1])
        probable, same = (dict(sampled.logprobs[0].best) for sampled in (said[-1], again))
        both = probable.keys() & same.keys()
        assert len(both) >= NUM_BEST - 2
        assert max(abs(probable[token] - same[token]) for token in both) < 0.1


def test_the_default_model_tells_prompts_from_answers_too(model_path: Path) -> None:
    """Its weights are quantized, and its widths those of real models."""
    with loaded(model_path) as engine:
        sequence, whole = begin(engine, PROMPT)
        expected = write(engine, sequence, whole, 6)
        tokens = [sampled.token_ids[0] for sampled in expected]
        for pieces in ([1], [40, 41, 60], range(1, len(PROMPT))):
            assert begin(engine, PROMPT, pieces)[1] == whole
        engine.truncate(sequence, 0)
        assert step(engine, sequence, [*PROMPT, *tokens[:5]]) == expected[5]
        engine.truncate(sequence, len(PROMPT))
        assert step(engine, sequence, tokens[:5], num_guesses=4).token_ids == tuple(tokens[1:6])


def test_heads_of_many_numbers(tmp_path: Path) -> None:
    golden, heads, dim = FAMILIES / "llama-tied", 2, 592
    weights = load_file(golden / "model.safetensors")
    rng = np.random.default_rng(0)
    for name, tensor in weights.items():
        if "self_attn" in name:
            shape = (48, heads * dim) if "o_proj" in name else (heads * dim, 48)
            weights[name] = rng.normal(0, tensor.std(), shape).astype(np.float32)
    folder = write_folder(tmp_path, golden, weights, head_dim=dim, num_attention_heads=heads, num_key_value_heads=heads)
    with loaded(folder) as engine:
        found = np.asarray(engine.score(PROMPT))
    with loaded(folder, kv_dtype="float32") as exact:
        assert np.abs(found - np.asarray(exact.score(PROMPT))).max() < 0.1
