"""Quantizing the default model on load: what it loses, what memory it takes, and how the next start goes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.cli.main import main
from kaiwa.errors import InvalidOption, OutOfMemory
from kaiwa.events import Progress
from kaiwa.runtime.loading import loader
from kaiwa.runtime.measuring import quality
from kaiwa.runtime.measuring.quality import QualityReport, compare
from unquantized import write_unquantized

LARGEST_TENSOR_BYTES = 49_152 * 576 * 2


@pytest.fixture(scope="module")
def folders(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """SmolLM2 in bfloat16, on its grid of 4-bit numbers and off it."""
    folder = tmp_path_factory.mktemp("unquantized")
    write_unquantized(model_path, folder / "on-grid", off_grid=folder / "off-grid")
    return folder / "on-grid", folder / "off-grid"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIWA_HOME", str(tmp_path / "home"))


@pytest.fixture
def short_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.txt"
    text.write_text(quality.TEXT.read_text(encoding="utf-8")[:600], encoding="utf-8")
    monkeypatch.setattr(quality, "TEXT", text)


def test_eight_bits_lose_next_to_nothing(folders: tuple[Path, Path]) -> None:
    told: list[tuple[int, int]] = []
    report = compare(folders[0], quantization="int8", threads=2, on_run=lambda *run: told.append(run))
    (int8,) = report.compared
    assert (int8.name, int8.number_format) == ("int8", "Q8_0")
    assert int8.mean_kl < 0.002
    assert int8.weights_bytes < 0.55 * report.reference.weights_bytes
    assert told == [(done, told[-1][1]) for done in range(1, len(told) + 1)]


def test_four_bits_lose_little(folders: tuple[Path, Path]) -> None:
    report = compare(folders[1], quantization="int4", threads=2)
    (int4,) = report.compared
    assert (int4.name, int4.number_format) == ("int4", "Q4_1")
    assert int4.mean_kl < 0.06
    assert int4.same_top > 0.8
    assert int4.weights_bytes < 0.4 * report.reference.weights_bytes


def test_four_bits_find_their_grid_again(folders: tuple[Path, Path], short_text: None) -> None:
    report = compare(folders[0])
    assert [quality.name for quality in report.compared] == ["int8", "int4"]
    assert report.compared[1].mean_kl < 0.01


def test_the_command_prints_it(
    folders: tuple[Path, Path], short_text: None, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bench", "--quality", str(folders[0]), "--quantization", "int8"]
    assert main(arguments) == 0
    table = capsys.readouterr().out
    assert "beside unquantized weights" in table
    assert "mean KL, nats" in table
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["compared"][0]["mean_kl"] < 0.01
    assert report["reference"]["name"] == "on-grid"


def test_a_quantized_file_beside_a_reference(folders: tuple[Path, Path], model_path: Path, short_text: None) -> None:
    report: QualityReport = compare(model_path, reference=folders[0])
    (file,) = report.compared
    assert file.number_format == "Q4_1"
    assert file.mean_kl < 0.01
    with pytest.raises(InvalidOption, match=r"is quantized already \(Q4_1\)") as caught:
        compare(model_path)
    assert caught.value.hint == "pass their path as reference"


def test_the_second_start_comes_from_the_cache(folders: tuple[Path, Path]) -> None:
    def start() -> tuple[str, set[str], float]:
        stages: set[str] = set()
        started = time.perf_counter()
        with kw.LLM(
            folders[1], quantization="int4", context_length=256, on_progress=lambda told: stages.add(told.stage)
        ) as llm:
            took_s = time.perf_counter() - started
            return llm.chat("What is rain?", max_new_tokens=12, do_sample=False).text, stages, took_s

    first, stages, first_s = start()
    assert stages == {"quantize", "load"}
    second, stages, second_s = start()
    assert stages == {"load"}
    assert second == first
    print(f"first start {first_s:.2f} s, second {second_s:.2f} s")


MEASURE = """
import sys
from pathlib import Path
from kaiwa.engines.native import engine, rounding
from kaiwa.weights.open import open_checkpoint
from kaiwa.weights.quantize import quantize, quantized_bytes
def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
checkpoint = open_checkpoint(sys.argv[1])
rounder = rounding.Rounder(2)
before = kilobytes("VmRSS:")
quantized = quantize(checkpoint, sys.argv[2], rounder=rounder)
num_bytes = quantized_bytes(checkpoint, sys.argv[2])
model = engine.load(quantized, threads=2, context_length=256)
print(num_bytes, (kilobytes("VmHWM:") - before) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_memory_never_holds_more_than_the_result_and_a_tensor(folders: tuple[Path, Path], quantization: str) -> None:
    command = [sys.executable, "-c", MEASURE, str(folders[1]), quantization]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    num_bytes, peak = map(int, done.stdout.split())
    assert peak <= num_bytes + 1.5 * LARGEST_TENSOR_BYTES


def test_what_does_not_fit_is_refused_and_what_would_is_said(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "available_bytes", lambda: 200_000_000)
    with pytest.raises(OutOfMemory, match="269 MB weights") as caught:
        kw.LLM(folders[0])
    assert caught.value.hint == 'load it with quantization="int8": its weights then take 143 MB'
    monkeypatch.setattr(loader, "available_bytes", lambda: 130_000_000)
    with pytest.raises(OutOfMemory, match="143 MB weights") as caught:
        kw.LLM(folders[0], quantization="int8")
    assert 'quantization="int4"' in caught.value.hint


def test_wrong_names_are_refused_before_anything_is_made(folders: tuple[Path, Path], model_path: Path) -> None:
    with pytest.raises(InvalidOption, match="quantization='int' is not known") as caught:
        kw.LLM(folders[0], quantization="int")
    assert caught.value.hint.startswith("did you mean 'int")
    with pytest.raises(InvalidOption, match="kv_dtype='float8' is not known"):
        kw.LLM(folders[0], quantization="int8", kv_dtype="float8")
    with pytest.raises(InvalidOption, match="is quantized already"):
        kw.LLM(model_path, quantization="int4")
    with pytest.raises(InvalidOption, match="already has its threads, context_length, quantization and kv_dtype"):
        kw.LLM(model_path, engine=object(), quantization="int4")  # type: ignore[arg-type]


def test_progress_of_a_first_start(folders: tuple[Path, Path]) -> None:
    told: list[Progress] = []
    kw.LLM(folders[0], quantization="int8", context_length=256, on_progress=told.append).close()
    for stage in ("quantize", "load"):
        of_stage = [progress for progress in told if progress.stage == stage]
        assert of_stage[-1].done == of_stage[-1].total > 0
