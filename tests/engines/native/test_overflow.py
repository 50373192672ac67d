"""A model whose numbers grow beyond what floats hold: an error of ours, and an engine that goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

from safetensors.numpy import load_file, save_file

from driving import GREEDY, loaded
from kaiwa.engines.engine import Slice
from kaiwa.errors import NumericalError
from kaiwa.sampling import Sampling

TINY = Path(__file__).parents[2] / "golden" / "families" / "llama-tied"


def test_infinite_logits_are_an_error_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] = tensors["model.norm.weight"] * 1e38
    save_file(tensors, folder / "model.safetensors")
    with loaded(folder) as engine:
        sequence = engine.open()
        engine.configure(sequence, GREEDY)
        [sampled] = engine.step([Slice(sequence, [5, 6, 7])])
        assert sampled is not None
        assert sampled.token_ids == ()
        assert isinstance(sampled.error, NumericalError)
        assert "NaN or infinite" in str(sampled.error)
        assert sampled.error.hint
        assert engine.length(sequence) == 3


def test_a_sequence_that_cannot_be_drawn_changes_nothing_for_others() -> None:
    with loaded(TINY) as engine:

        def opened(**options: float) -> int:
            sequence = engine.open()
            engine.configure(sequence, Sampling(temperature=1.5, seed=3, **options), prompt_ids=range(256))
            return sequence

        def said_by(healthy: int, *sick: int) -> list[int]:
            token_ids, said = [5, 6], []
            for _ in range(12):
                first, *others = engine.step([Slice(healthy, token_ids), *(Slice(sequence, [7]) for sequence in sick)])
                assert first is not None
                assert first.error is None
                assert all(other is not None and isinstance(other.error, NumericalError) for other in others)
                token_ids = list(first.token_ids)
                said += token_ids
            return said

        sick = [opened(repetition_penalty=1e-40) for _ in range(2)]
        assert said_by(opened()) == said_by(opened(), *sick)
