"""What the engine does for many at once: guesses, masks, logprobs, forks, embeddings, and a cache that they share."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from driving import GREEDY, continue_greedily, loaded, next_token, start
from kaiwa.engines.engine import Engine, Sampled, Slice
from kaiwa.engines.native.kv_cache import BLOCK_TOKENS
from kaiwa.errors import ContextOverflow, InvalidOption, OutOfMemory
from kaiwa.sampling import Sampling

FAMILIES = Path(__file__).parents[2] / "golden" / "families"
LLAMA, HYBRID, CROSSING = FAMILIES / "llama-tied", FAMILIES / "qwen3.5", FAMILIES / "phi3-crossing"
PROMPT = [int(token) for token in np.random.default_rng(5).integers(4, 256, 50)]
DRAWN = Sampling(temperature=1.5, seed=11, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.3)


def step(engine: Engine, part: Slice) -> Sampled:
    """What the step of one slice samples."""
    (sampled,) = engine.step([part])
    assert sampled is not None
    return sampled


def write(engine: Engine, sampling: Sampling, num_tokens: int) -> tuple[int, list[int]]:
    """An answer to the prompt, token by token."""
    sequence = engine.open()
    engine.configure(sequence, sampling, prompt_ids=PROMPT)
    tokens = [next_token(engine, sequence, PROMPT)]
    while len(tokens) < num_tokens:
        tokens.append(next_token(engine, sequence, tokens[-1:]))
    return sequence, tokens


@pytest.mark.parametrize("sampling", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("folder", [LLAMA, CROSSING, FAMILIES / "mistral-window"], ids=lambda folder: folder.name)
@pytest.mark.parametrize("kv_dtype", ["float32", "int8"])
def test_guesses_change_nothing_but_the_number_of_steps(
    folder: Path, sampling: Sampling, kv_dtype: str, isa: str
) -> None:
    rng = random.Random(3)
    with loaded(folder, kv_dtype=kv_dtype) as engine:
        _, expected = write(engine, sampling, 60)
        sequence = engine.open()
        engine.configure(sequence, sampling, prompt_ids=PROMPT)
        tokens = [next_token(engine, sequence, PROMPT)]
        num_steps = 1
        while len(tokens) < 60:
            guesses = expected[len(tokens) : len(tokens) + rng.randrange(6)]
            if guesses and rng.random() < 0.5:
                guesses[rng.randrange(len(guesses))] ^= 1
            sampled = step(engine, Slice(sequence, [tokens[-1], *guesses], num_guesses=len(guesses)))
            tokens += sampled.token_ids
            assert engine.length(sequence) == len(PROMPT) + len(tokens) - 1
            num_steps += 1
        assert tokens[:60] == expected
        assert num_steps < 45


def test_guesses_that_follow_the_prompt_itself_are_left_out() -> None:
    with loaded(LLAMA) as engine:
        _, expected = write(engine, GREEDY, 5)
        sequence = engine.open()
        engine.configure(sequence, GREEDY, prompt_ids=PROMPT)
        sampled = step(engine, Slice(sequence, [*PROMPT, *expected[:3], 7], num_guesses=4))
        assert list(sampled.token_ids) == expected[:1]
        assert engine.length(sequence) == len(PROMPT)


def test_guesses_that_cannot_be_taken_back_are_refused() -> None:
    with loaded(HYBRID) as engine:
        assert engine.info.is_recurrent
        sequence, _ = start(engine, PROMPT)
        with pytest.raises(ValueError, match="cannot be taken back"):
            engine.step([Slice(sequence, [5, 6], num_guesses=1)])
        assert engine.length(sequence) == len(PROMPT)


def test_only_what_is_allowed_is_sampled() -> None:
    with loaded(LLAMA) as engine:
        size = engine.info.vocab_size
        logits = np.asarray(engine.score(PROMPT))[-1]
        ids = [3, 8, 15, 16, 200, size - 1]
        allowed = np.packbits(np.isin(np.arange(size), ids), bitorder="little").tobytes()
        sequence = engine.open()
        engine.configure(sequence, GREEDY, prompt_ids=PROMPT)
        sampled = step(engine, Slice(sequence, PROMPT, allowed=allowed, num_logprobs=2))
        assert sampled.token_ids == (ids[int(np.argmax(logits[ids]))],)
        assert sampled.logprobs[0].sampled == pytest.approx(log_softmax(logits)[sampled.token_ids[0]], abs=1e-4)
        engine.configure(sequence, Sampling(temperature=50.0, seed=2))
        drawn = [step(engine, Slice(sequence, [9], allowed=allowed)).token_ids[0] for _ in range(40)]
        assert set(drawn) <= set(ids)
        assert len(set(drawn)) > 3
        with pytest.raises(ValueError, match="no token is allowed"):
            engine.step([Slice(sequence, [9], allowed=bytes(len(allowed)))])
        with pytest.raises(ValueError, match="8 bits"):
            engine.step([Slice(sequence, [9], allowed=b"\xff")])


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def test_logprobs_are_those_of_the_logits(isa: str) -> None:
    with loaded(LLAMA) as engine:
        sequence = engine.open()
        engine.configure(sequence, DRAWN, prompt_ids=PROMPT)
        sampled = step(engine, Slice(sequence, PROMPT, num_logprobs=5))
        expected = log_softmax(np.asarray(engine.score(PROMPT))[-1])
        (logprobs,) = sampled.logprobs
        assert logprobs.sampled == pytest.approx(expected[sampled.token_ids[0]], abs=1e-4)
        assert [token for token, _ in logprobs.best] == np.argsort(-expected, kind="stable")[:5].tolist()
        assert [value for _, value in logprobs.best] == pytest.approx(np.sort(expected)[::-1][:5], abs=1e-4)
        assert step(engine, Slice(sequence, [4], num_logprobs=0)).logprobs[0].best == ()
        everything = step(engine, Slice(sequence, [4], num_logprobs=10**6)).logprobs[0].best
        assert np.exp([value for _, value in everything]).sum() == pytest.approx(1, abs=1e-4)
        assert step(engine, Slice(sequence, [4])).logprobs == ()


def test_each_right_guess_has_its_logprobs() -> None:
    with loaded(LLAMA) as engine:
        _, expected = write(engine, GREEDY, 4)
        sequence = engine.open()
        engine.configure(sequence, GREEDY, prompt_ids=PROMPT)
        first = next_token(engine, sequence, PROMPT)
        sampled = step(engine, Slice(sequence, [first, *expected[1:3]], num_guesses=2, num_logprobs=1))
        assert [first, *sampled.token_ids] == expected
        assert [logprobs.best[0][0] for logprobs in sampled.logprobs] == expected[1:]


def test_a_bias_is_added_before_everything_else() -> None:
    with loaded(LLAMA) as engine:
        logits = np.asarray(engine.score(PROMPT))[-1]
        best, other = int(np.argmax(logits)), 17
        for bias, expected in (({other: 100.0}, other), ({best: -100.0}, int(np.argsort(-logits)[1]))):
            sequence = engine.open()
            engine.configure(sequence, Sampling(do_sample=False, logit_bias=bias), prompt_ids=PROMPT)
            assert next_token(engine, sequence, PROMPT) == expected
        with pytest.raises(InvalidOption, match="token 99999"):
            engine.configure(sequence, Sampling(logit_bias={99_999: 1}))


@pytest.mark.parametrize("folder", [LLAMA, CROSSING, HYBRID], ids=lambda folder: folder.name)
def test_a_fork_goes_its_own_way(folder: Path, isa: str) -> None:
    with loaded(folder) as engine:
        sequence, tokens = write(engine, GREEDY, 40)
        other = start(engine, [*PROMPT, 9, 8])
        expected = continue_greedily(engine, *other, 20)
        length = engine.keepable(sequence, len(PROMPT))
        twin = engine.fork(sequence, len(PROMPT))
        assert engine.length(twin) == length
        engine.configure(twin, GREEDY, prompt_ids=[*PROMPT, 9, 8])
        token = next_token(engine, twin, [*PROMPT, 9, 8][length:])
        assert continue_greedily(engine, twin, token, 20) == expected
        assert continue_greedily(engine, sequence, tokens[-1], 10) == write(engine, GREEDY, 49)[1][39:]
        whole = engine.fork(sequence, 10**6)
        assert engine.length(whole) == engine.length(sequence)


def test_forks_take_no_memory_until_they_differ() -> None:
    with loaded(LLAMA, context_length=128, cache_tokens=256) as engine:
        sequence, _ = start(engine, [*PROMPT, *PROMPT[:14]])
        before = engine.num_free_tokens()
        twins = [engine.fork(sequence, 64) for _ in range(64)]
        assert engine.num_free_tokens() <= before
        for twin in twins:
            engine.close(twin)
        assert engine.num_free_tokens() == before
        twins = [engine.fork(sequence, 60) for _ in range(6)]
        for twin in twins:
            engine.configure(twin, GREEDY)
            next_token(engine, twin, [5])
        with pytest.raises(OutOfMemory, match="256 tokens is full"):
            next_token(engine, engine.fork(sequence, 60), [5])


def test_what_is_said_to_be_free_is() -> None:
    with loaded(LLAMA, context_length=256, cache_tokens=320) as engine:
        sequences = [start(engine, PROMPT[: 7 * i])[0] for i in range(1, 6)]
        for first, sequence in enumerate(sequences):
            free = engine.num_free_tokens()
            assert free > BLOCK_TOKENS
            batch = [Slice(other, [5], sample=False) for other in sequences[first + 1 :]]
            engine.step([*batch, Slice(sequence, [6] * (free - len(batch)), sample=False)])
            engine.truncate(sequence, 3)
        before = [engine.length(sequence) for sequence in sequences]
        free = engine.num_free_tokens()
        with pytest.raises(OutOfMemory, match="320 tokens is full"):
            engine.step([Slice(sequences[0], [4] * 200), *(Slice(other, [4] * 32) for other in sequences[1:])])
        assert [engine.length(sequence) for sequence in sequences] == before
        assert engine.num_free_tokens() == free


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["float32", "float16", "int8"]))
def test_whatever_is_forked_cut_and_closed_each_sequence_is_its_own(rng: random.Random, kv_dtype: str) -> None:
    with loaded(LLAMA, cache_tokens=1024, kv_dtype=kv_dtype) as engine:
        texts: dict[int, list[int]] = {}
        for _ in range(60):
            known = list(texts)
            chosen = rng.choice(known) if known else -1
            match rng.choice(["open", "fork", "fork", "cut", "close", "read", "read", "read"]):
                case "open" if len(known) < 8:
                    sequence = engine.open()
                    engine.configure(sequence, GREEDY)
                    texts[sequence] = []
                case "fork" if known and len(known) < 8:
                    length = rng.randint(0, len(texts[chosen]))
                    twin = engine.fork(chosen, length)
                    engine.configure(twin, GREEDY)
                    texts[twin] = texts[chosen][:length]
                case "cut" if known:
                    del texts[chosen][rng.randint(0, len(texts[chosen])) :]
                    engine.truncate(chosen, len(texts[chosen]))
                case "close" if len(known) > 3:
                    engine.close(chosen)
                    del texts[chosen]
                case "read" if known:
                    some = rng.sample(known, rng.randint(1, len(known)))
                    pieces = {other: [rng.randint(4, 255) for _ in range(rng.randint(1, 12))] for other in some}
                    engine.step([Slice(other, piece, sample=False) for other, piece in pieces.items()])
                    for other, piece in pieces.items():
                        texts[other] += piece
        for sequence, text in texts.items():
            assert engine.length(sequence) == len(text)
            fresh = engine.open()
            engine.configure(fresh, GREEDY)
            expected = next_token(engine, fresh, [*text, 7])
            assert next_token(engine, sequence, [7]) == expected
            engine.close(fresh)
            engine.close(sequence)


def test_embeddings_are_what_the_output_head_sees(isa: str, tmp_path: Path) -> None:
    head = load_file(LLAMA / "model.safetensors")["model.embed_tokens.weight"]
    prompt = [int(token) for token in np.random.default_rng(6).integers(4, 256, 300)]
    shutil.copytree(LLAMA, tmp_path / "longer")  # than a step
    config = json.loads((LLAMA / "config.json").read_text())
    (tmp_path / "longer" / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 512}))
    with loaded(tmp_path / "longer") as engine:
        logits = np.asarray(engine.score(prompt))
        lasts = [np.asarray(engine.embed(prompt[:end], pooling="last")) for end in (1, 40, 256, 257, 300)]
        assert lasts[0].dtype == np.float32
        np.testing.assert_allclose(np.stack(lasts) @ head.T, logits[[0, 39, 255, 256, 299]], atol=1e-3)
        mean = np.asarray(engine.embed(prompt))
        np.testing.assert_allclose(mean @ head.T, logits.mean(axis=0), atol=1e-3)
        free = engine.num_free_tokens()
        for token_ids, pooling in (([], "mean"), (prompt, "max")):
            with pytest.raises(InvalidOption, match=f"{len(token_ids)} tokens with pooling='{pooling}'"):
                engine.embed(token_ids, pooling=pooling)  # type: ignore[arg-type]
        with pytest.raises(ContextOverflow):
            engine.embed([5] * (engine.info.context_length + 1))
        assert engine.num_free_tokens() == free


def test_a_step_takes_one_slice_of_a_sequence() -> None:
    with loaded(LLAMA) as engine:
        sequence, _ = start(engine, PROMPT)
        with pytest.raises(ValueError, match="one slice of a sequence"):
            engine.step([Slice(sequence, [5]), Slice(sequence, [6])])
        assert engine.length(sequence) == len(PROMPT)
