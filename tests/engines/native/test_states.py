"""Recurrent layers: a sequence goes back to a checkpoint or to its beginning, and says which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driving import GREEDY, continue_greedily, loaded, next_token, start
from kaiwa.engines.engine import Engine, Slice
from kaiwa.engines.native._native import BlockTable, KvCache
from kaiwa.engines.native.kv_cache import Sequence
from kaiwa.engines.native.states import CHECKPOINT_MARGIN, StatePool
from kaiwa.errors import OutOfMemory

HYBRID = Path(__file__).parents[2] / "golden" / "families" / "qwen3.5"
PROMPT = [int(token) for token in np.random.default_rng(5).integers(4, 256, 100)]
CHECKPOINT = len(PROMPT) - CHECKPOINT_MARGIN


def new_sequence(*, length: int = 0, num_prompt_tokens: int = 0) -> Sequence:
    """One that no engine knows."""
    return Sequence(BlockTable(KvCache([], 1, "float16")), length=length, num_prompt_tokens=num_prompt_tokens)


def continue_from(engine: Engine, sequence: int, token_ids: list[int], num_tokens: int) -> list[int]:
    """Read what the sequence does not hold of `token_ids`, and answer."""
    engine.configure(sequence, GREEDY, prompt_ids=token_ids)
    token = next_token(engine, sequence, token_ids[engine.length(sequence) :])
    return continue_greedily(engine, sequence, token, num_tokens)


@pytest.mark.parametrize("chunk", [256, 30, 7, 1])
def test_going_back_into_a_prompt_lands_on_its_checkpoint(chunk: int, isa: str) -> None:
    other = [*PROMPT[:-5], 9, 8, 7]
    with loaded(HYBRID) as engine:
        expected = continue_greedily(engine, *start(engine, other), 20)
        sequence, token = start(engine, PROMPT, chunk=chunk)
        continue_greedily(engine, sequence, token, 10)
        assert engine.keepable(sequence, len(PROMPT) - 5) == CHECKPOINT
        engine.truncate(sequence, len(PROMPT) - 5)
        assert engine.length(sequence) == CHECKPOINT
        assert continue_from(engine, sequence, other, 20) == expected
        engine.truncate(sequence, CHECKPOINT)
        assert engine.length(sequence) == CHECKPOINT, "a checkpoint serves more than once"
        assert continue_from(engine, sequence, other, 20) == expected


def test_before_the_checkpoint_only_the_beginning_is_left() -> None:
    with loaded(HYBRID) as engine:
        expected = continue_greedily(engine, *start(engine, PROMPT[:50]), 20)
        sequence, _ = start(engine, PROMPT)
        assert engine.keepable(sequence, 50) == 0
        engine.truncate(sequence, 50)
        assert engine.length(sequence) == 0
        assert continue_from(engine, sequence, PROMPT[:50], 20) == expected


def test_what_is_not_cut_stays() -> None:
    with loaded(HYBRID) as engine:
        sequence, _ = start(engine, PROMPT)
        for length in (len(PROMPT), len(PROMPT) + 9):
            assert engine.keepable(sequence, length) == len(PROMPT)
            engine.truncate(sequence, length)
            assert engine.length(sequence) == len(PROMPT)


def test_two_turns_leave_a_checkpoint_each() -> None:
    second = [*PROMPT, *range(10, 70)]
    with loaded(HYBRID) as engine:
        sequence, _ = start(engine, PROMPT)
        continue_from(engine, sequence, second, 5)
        assert engine.keepable(sequence, len(second)) == len(second) - CHECKPOINT_MARGIN
        assert engine.keepable(sequence, len(second) - 30) == CHECKPOINT
        engine.truncate(sequence, len(second) - 30)
        assert engine.keepable(sequence, len(second)) == CHECKPOINT


def test_one_step_writes_no_checkpoint_twice() -> None:
    prompts = [PROMPT[i : i + 40] for i in range(6)]
    with loaded(HYBRID, max_sequences=6) as engine:
        expected = []
        for prompt in prompts:
            sequence, token = start(engine, prompt)
            expected.append(continue_greedily(engine, sequence, token, 8))
            engine.close(sequence)
        sequences = [engine.open() for _ in prompts]
        with pytest.raises(OutOfMemory, match="all 6 sequences"):
            engine.open()
        for sequence, prompt in zip(sequences, prompts, strict=True):
            engine.configure(sequence, GREEDY, prompt_ids=prompt)
        engine.step([Slice(sequence, prompt) for sequence, prompt in zip(sequences, prompts, strict=True)])
        assert [engine.keepable(sequence, 39) for sequence in sequences] == [24] * 6
        longer = [*prompts[0], *PROMPT[50:80]]
        continue_from(engine, sequences[0], longer, 8)
        assert engine.keepable(sequences[0], len(longer)) == len(longer) - CHECKPOINT_MARGIN
        assert [engine.keepable(sequence, 39) for sequence in sequences] == [0] + [24] * 5, "the oldest made room"
        for sequence, prompt, text in zip(sequences, prompts, expected, strict=True):
            engine.truncate(sequence, 39)
            assert continue_from(engine, sequence, prompt, 8) == text


def test_a_checkpoint_of_a_step_that_failed_is_never_used() -> None:
    pool, sequence = StatePool([32], max_sequences=8), new_sequence(num_prompt_tokens=40)
    assert pool.plan(sequence, 40).checkpoint_tokens == 40 - CHECKPOINT_MARGIN
    pool.plan(sequence, 10)  # the step before came to nothing
    sequence.length = 40
    assert pool.keepable(sequence, 39) == 0


def test_states_run_out_and_come_back() -> None:
    pool = StatePool([32], max_sequences=8)
    sequences = [new_sequence(num_prompt_tokens=20) for _ in range(8)]
    slots = set()
    for sequence in sequences:
        slots.add(pool.plan(sequence, 20).state)
        sequence.length = 20
    assert len(slots) == 8
    with pytest.raises(OutOfMemory, match="all 8 states"):
        pool.plan(new_sequence(), 1)
    pool.close(sequences[7])
    assert pool.plan(new_sequence(), 1).state in slots


def test_without_recurrent_layers_there_is_nothing_to_keep() -> None:
    pool, sequence = StatePool([], max_sequences=8), new_sequence(length=10)
    assert pool.cache.num_slots == 0
    assert pool.keepable(sequence, 7) == 7
    assert pool.plan(sequence, 5).state == -1
