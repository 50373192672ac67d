"""The default model against what transformers says with the same weights: `tests/golden/smollm2_prose.npz`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from distributions import CoarseDistributions, log_softmax
from driving import GREEDY, loaded, next_token
from kaiwa.engines.engine import Engine

GOLDEN = Path(__file__).parents[2] / "golden" / "smollm2_prose.npz"


@pytest.fixture
def engine(model_path: Path, isa: str) -> Iterator[Engine]:
    with loaded(model_path, context_length=1024) as engine:
        yield engine


@pytest.fixture(scope="module")
def expected() -> tuple[list[int], CoarseDistributions]:
    with np.load(GOLDEN) as file:
        return file["prompt"].tolist(), CoarseDistributions(file["token_ids"], file["log_probs"])


def test_distributions_of_prose(engine: Engine, expected: tuple[list[int], CoarseDistributions]) -> None:
    prompt, theirs = expected
    ours = log_softmax(np.asarray(engine.score(prompt)))
    agreement = (ours.argmax(axis=-1) == theirs.token_ids[:, 0]).mean()
    assert theirs.kl_to(ours).mean() < 0.005
    assert agreement > 0.97


def test_most_probable_tokens_step_by_step(engine: Engine, expected: tuple[list[int], CoarseDistributions]) -> None:
    prompt, theirs = expected
    sequence = engine.open()
    engine.configure(sequence, GREEDY)
    ours = [next_token(engine, sequence, [token_id]) for token_id in prompt[:200]]
    assert (np.array(ours) == theirs.token_ids[:200, 0]).mean() > 0.96
