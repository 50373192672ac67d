"""Quantizing a checkpoint as it is opened: what becomes what, and a cache that never answers wrongly."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gguf_bytes import Entry, write_llama
from kaiwa.engines.native.rounding import Rounder
from kaiwa.errors import CacheFailed, InvalidOption, UnusableFile
from kaiwa.events import Progress
from kaiwa.weights import quantized_cache
from kaiwa.weights.checkpoint import Checkpoint
from kaiwa.weights.open import open_checkpoint
from kaiwa.weights.quantize import RECIPES, possible_bytes, quantize, quantized_bytes
from safetensors_folder import CONFIG, write_folder

SHAPES = {
    "model.embed_tokens.weight": (4, 64),
    "model.norm.weight": (64,),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.layers.0.self_attn.q_proj.bias": (64,),
    "model.layers.0.self_attn.v_proj.weight": (32, 64),
    "model.layers.0.mlp.down_proj.weight": (64, 96),
    "model.layers.0.mlp.odd.weight": (64, 40),
    "model.layers.0.mlp.experts.gate_up_proj": (3, 32, 64),
}


class CountingRounder(Rounder):
    """Counts what it rounds, and may be told to fail."""

    def __init__(self) -> None:
        super().__init__(1)
        self.num_calls = 0
        self.fails_at = 0

    def round(self, data: memoryview, format: str, to: str) -> bytes:
        self.num_calls += 1
        if self.num_calls == self.fails_at:
            raise KeyboardInterrupt
        return super().round(data, format, to)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIWA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def rounder() -> CountingRounder:
    return CountingRounder()


def write_model(folder: Path, *, seed: int = 0, bad: float | None = None) -> Path:
    write_folder(folder, {}, {**CONFIG, "hidden_size": 64})
    rng = np.random.default_rng(seed)
    tensors = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in SHAPES.items()}
    if bad is not None:
        tensors["model.layers.0.mlp.down_proj.weight"][7, 5] = bad
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def content(path: Path, rounder: Rounder, quantization: str = "int4") -> dict[str, tuple[str, bytes]]:
    with closing(open_checkpoint(path)) as plain, closing(quantize(plain, quantization, rounder=rounder)) as checkpoint:
        return {tensor.name: (tensor.format, bytes(tensor.data)) for tensor in checkpoint.tensors.values()}


def cached() -> list[Path]:
    return sorted(quantized_cache.folder().glob("*/*/*.gguf"))


def test_every_tensor_has_the_format_that_its_name_asks_for(model: Path, rounder: Rounder) -> None:
    formats = {name: format for name, (format, _) in content(model, rounder).items()}
    assert formats == {
        "model.embed_tokens.weight": "Q8_0",
        "model.norm.weight": "F16",
        "model.layers.0.self_attn.q_proj.weight": "Q4_1",
        "model.layers.0.self_attn.q_proj.bias": "F16",
        "model.layers.0.self_attn.v_proj.weight": "Q8_0",
        "model.layers.0.mlp.down_proj.weight": "Q5_1",
        "model.layers.0.mlp.odd.weight": "F16",  # 40 numbers are no whole blocks
        "model.layers.0.mlp.experts.gate_up_proj": "Q5_1",  # the only layer is an outer one
    }
    eight = {format for format, _ in content(model, rounder, "int8").values()}
    assert eight == {"Q8_0", "F16"}


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("lm_head.weight", "Q8_0"),
        ("model.layers.9.mlp.gate.weight", "Q8_0"),  # a router
        ("model.layers.9.mlp.gate_proj.weight", "Q4_1"),
        ("model.layers.5.mlp.gate_proj.weight", "Q5_1"),
        ("model.layers.6.mlp.gate_proj.weight", "Q4_1"),
        ("model.layers.26.mlp.up_proj.weight", "Q4_1"),
        ("model.layers.27.mlp.up_proj.weight", "Q5_1"),
        ("model.layers.9.mlp.shared_expert_gate.weight", "Q8_0"),
        ("model.layers.9.self_attn.qkv_proj.weight", "Q5_1"),
        ("model.layers.9.self_attn.o_proj.weight", "Q4_1"),
        ("model.layers.9.block_sparse_moe.experts.w2.weight", "Q5_1"),
    ],
)
def test_sensitive_matrices_of_a_model_of_32_layers(name: str, format: str) -> None:
    assert RECIPES["int4"].format_of(name, 32) == format


def test_the_size_is_known_beforehand(model: Path, rounder: Rounder) -> None:
    with closing(open_checkpoint(model)) as checkpoint:
        expected = quantized_bytes(checkpoint, "int4")
        assert possible_bytes(checkpoint)["int4"] == expected
    assert sum(len(data) for _, data in content(model, rounder).values()) == expected


def test_the_second_time_comes_from_the_cache(model: Path, rounder: CountingRounder) -> None:
    first = content(model, rounder)
    assert rounder.num_calls == 5
    assert content(model, rounder) == first
    assert rounder.num_calls == 5
    assert len(cached()) == 1


def test_a_changed_file_is_never_answered_from_the_cache(model: Path, rounder: CountingRounder) -> None:
    path = model / "model.safetensors"
    before, stat = content(model, rounder), path.stat()
    with path.open("r+b") as file:
        file.seek(-1000, os.SEEK_END)  # one number in the midst of a tensor
        file.write(b"\x11\x22")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert content(model, rounder) != before
    assert len(cached()) == 1, "what belongs to the old file is gone"


def test_another_recipe_and_another_model_have_their_own_places(
    model: Path, tmp_path: Path, rounder: CountingRounder
) -> None:
    other = write_model(tmp_path / "other", seed=1)
    results = [content(path, rounder, name) for path in (model, other) for name in RECIPES]
    assert len(cached()) == 4
    assert [content(path, rounder, name) for path in (model, other) for name in RECIPES] == results
    assert rounder.num_calls == 20


def test_entries_of_models_that_are_gone_are_removed(model: Path, tmp_path: Path, rounder: Rounder) -> None:
    gone = write_model(tmp_path / "gone", seed=1)
    content(gone, rounder)
    gone.rename(tmp_path / "elsewhere")
    content(model, rounder)
    assert [path.parts[-3].split("-")[0] for path in cached()] == ["model"]


@pytest.mark.parametrize("damage", ["bit", "cut", "empty", "note", "no note", "other note", "header"])
def test_a_damaged_cache_is_made_anew(model: Path, rounder: CountingRounder, damage: str) -> None:
    before = content(model, rounder)
    [path] = cached()
    note = path.with_name("note.json")
    raw = bytearray(path.read_bytes())
    if damage == "bit":
        raw[-100] ^= 4
    elif damage == "cut":
        del raw[-100:]
    elif damage == "empty":
        raw.clear()
    elif damage == "header":
        raw[9] ^= 1
    path.write_bytes(raw)
    if damage == "note":
        note.write_bytes(b"\xff\x00{")
    elif damage == "other note":
        note.write_text("[1]")
    elif damage == "no note":
        note.unlink()
    assert content(model, rounder) == before
    assert rounder.num_calls == 10
    assert content(model, rounder) == before
    assert rounder.num_calls == 10


def test_an_interruption_leaves_nothing_behind(model: Path, rounder: CountingRounder) -> None:
    rounder.fails_at = 3
    with closing(open_checkpoint(model)) as checkpoint, pytest.raises(KeyboardInterrupt):
        quantize(checkpoint, "int4", rounder=rounder)
    assert [path.name for path in quantized_cache.folder().glob("*/*")] == [".lock"]
    content(model, rounder)


def test_what_a_killed_process_left_is_removed(model: Path, rounder: CountingRounder) -> None:
    before = content(model, rounder)
    [path] = cached()
    path.parent.rename(path.parents[1] / ".unfinished")
    assert content(model, rounder) == before
    assert not (path.parents[1] / ".unfinished").exists()


class SlowRounder(CountingRounder):
    """Says when it begins, and then waits until another waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def round(self, data: memoryview, format: str, to: str) -> bytes:
        self.has_begun.set()
        assert self.may_go_on.wait(10)
        return super().round(data, format, to)


def test_of_two_at_once_one_waits_for_the_other(model: Path, rounder: CountingRounder) -> None:
    slow = SlowRounder()
    stages: set[str] = set()

    def on_progress(progress: Progress) -> None:
        stages.add(progress.stage)
        slow.may_go_on.set()

    first = threading.Thread(target=content, args=(model, slow))
    first.start()
    assert slow.has_begun.wait(10)
    quantize(open_checkpoint(model), "int4", rounder=rounder, on_progress=on_progress).close()
    first.join()
    assert stages == {"waiting"}
    assert (slow.num_calls, rounder.num_calls) == (5, 0)


def test_progress_ends_with_all_bytes(model: Path, rounder: Rounder) -> None:
    told: list[Progress] = []
    quantize(open_checkpoint(model), "int4", rounder=rounder, on_progress=told.append).close()
    done = [progress.done for progress in told]
    assert done == sorted(done)
    assert told[-1].stage == "quantize"
    assert told[-1].done == told[-1].total == 2 * sum(np.prod(SHAPES[name]) for name in SHAPES if is_rounded(name))


def is_rounded(name: str) -> bool:
    return len(SHAPES[name]) > 1 and SHAPES[name][-1] % 32 == 0


def test_a_large_matrix_is_rounded_piece_by_piece(
    model: Path, rounder: CountingRounder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = content(model, rounder)
    monkeypatch.setattr("kaiwa.weights.quantize._PIECE_BYTES", 1000)
    monkeypatch.setattr(quantized_cache, "REVISION", 2)
    assert content(model, rounder) == whole
    assert rounder.num_calls > 20


@pytest.fixture
def opened(model: Path) -> Iterator[Checkpoint]:
    with closing(open_checkpoint(model)) as checkpoint:
        yield checkpoint


def test_an_unknown_name_offers_the_nearest(opened: Checkpoint, rounder: Rounder) -> None:
    with pytest.raises(InvalidOption, match="quantization='in4' is not known") as caught:
        quantize(opened, "in4", rounder=rounder)
    assert caught.value.hint == "did you mean 'int4'?"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, rounder: Rounder, bad: float) -> None:
    path = write_model(tmp_path / "bad", bad=bad)
    with pytest.raises(
        UnusableFile, match=r"'model\.layers\.0\.mlp\.down_proj\.weight' holds numbers that are infinite"
    ):
        content(path, rounder)
    assert not cached()


def test_what_is_quantized_already_is_refused(tmp_path: Path, rounder: Rounder) -> None:
    path = tmp_path / "model.gguf"
    tensors = [
        Entry("token_embd.weight", (4, 32)),
        Entry("blk.0.attn_q.weight", (8, 32), format=8, data=bytes(34 * 8)),
    ]
    write_llama(path, {"llama.embedding_length": 32}, tensors)
    with closing(open_checkpoint(path)) as checkpoint:
        assert possible_bytes(checkpoint) == {}
        with pytest.raises(InvalidOption, match=r"model\.gguf is quantized already \(Q8_0\)"):
            quantize(checkpoint, "int8", rounder=rounder)


def test_a_folder_that_takes_nothing_says_so(opened: Checkpoint, home: Path, rounder: Rounder) -> None:
    home.mkdir()
    (home / "cache").write_text("in the way")
    with pytest.raises(CacheFailed, match="cannot be kept in") as caught:
        quantize(opened, "int4", rounder=rounder)
    assert "KAIWA_HOME" in caught.value.hint


def test_a_full_disk_is_refused_before_anything_is_made(
    opened: Checkpoint, rounder: CountingRounder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantized_cache, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(CacheFailed, match=r"bytes, and .* free"):
        quantize(opened, "int4", rounder=rounder)
    assert rounder.num_calls == 0


def test_experts_that_lie_on_their_side_are_refused(opened: Checkpoint, rounder: Rounder) -> None:
    sideways = replace(opened, config={**opened.config, "model_type": "gpt_oss"})
    with pytest.raises(InvalidOption, match="holds its experts column by column"):
        quantize(sideways, "int4", rounder=rounder)
