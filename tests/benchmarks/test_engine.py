"""The benchmark of the engine: models with random weights that compute, and a table that hangs together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

import engine as benchmark
import machine
import write_models
from driving import loaded

TINY = {"hidden_size": 256, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "intermediate_size": 512}


@pytest.mark.parametrize("name", [name for name, shape in write_models.SHAPES.items() if not shape.num_experts])
def test_random_models_compute_finite_numbers(name: str, tmp_path: Path) -> None:
    shape = replace(write_models.SHAPES[name], **TINY, vocab_size=512)
    write_models.write(shape, tmp_path / "model.gguf")
    with loaded(tmp_path / "model.gguf", context_length=64) as engine:
        logits = np.asarray(engine.score([1, 300, 7, 411]))
    assert np.isfinite(logits).all()
    assert 0.1 < logits.std() < 100


@pytest.mark.parametrize("name", write_models.SHAPES)
def test_files_hold_what_the_shape_says(name: str, tmp_path: Path) -> None:
    shape = replace(write_models.SHAPES[name], **TINY, vocab_size=512)
    write_models.write(shape, tmp_path / "model.gguf")
    tensors = {tensor.name: tensor for tensor in GGUFReader(tmp_path / "model.gguf").tensors}
    assert tensors["output.weight"].tensor_type is shape.head
    ending = "_exps.weight" if shape.num_experts else ".weight"
    experts = [shape.num_experts] if shape.num_experts else []
    assert list(tensors[f"blk.1.ffn_down{ending}"].shape) == [512, 256, *experts]


def test_embeddings_are_not_work(tmp_path: Path) -> None:
    write_models.write(replace(write_models.SHAPES["1.1b-q8_0"], **TINY, vocab_size=512), tmp_path / "model.gguf")
    work = machine.work_of(tmp_path / "model.gguf")
    layer = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256 + 2 * 256
    assert work.products == 2 * layer + 256 + 512 * 256
    assert work.cache_bytes_per_token == 2 * 2 * 2 * 64 * 2


def test_the_table_compares_speed_with_what_memory_allows() -> None:
    row = benchmark.Row("decode it", "it", "decode", least_ratio=2.0)
    work = machine.Work(vocab_size=10, weights_bytes=1000, cache_bytes_per_token=1, products=900)
    here = machine.Machine("Some processor", 2, bandwidth=100_000.0, dot_peak=1e6)
    result = benchmark.Result(row, kaiwa=60.0, peer=25.0, limit=96.0, work=work)
    profiles = {"decode it": {"Linear": 0.003, "Attention": 0.001}}
    assert benchmark.report(here, [result], profiles).splitlines()[3:] == [
        "decode it                  llama.cpp      25.0      60.0    2.40       2.0  62% of the bandwidth",
        "",
        "decode it: 4.00 ms per step",
        "  Linear                      3.00 ms    75%",
        "  Attention                   1.00 ms    25%",
    ]


def test_names_of_rows_are_unique_and_their_models_exist() -> None:
    names = [(row.name, row.peer) for row in benchmark.ROWS]
    assert len(set(names)) == len(names)
    assert {row.model for row in benchmark.ROWS} <= {benchmark.SMOLLM2, *write_models.SHAPES}
