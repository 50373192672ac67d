"""`kaiwa bench`: what it prints. How it measures is tested beside `kaiwa.runtime.measuring.bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kaiwa.chat.model import ModelCard
from kaiwa.cli.bench import table
from kaiwa.cli.main import main
from kaiwa.runtime.measuring.bench import Measured, Report

CARD = ModelCard("tiny:1b", "llama", "Q4_0", "native (AVX2, 2 threads)", 1_100_000_000, 2048, 640_000_000, 46_000_000)
OURS = Measured("kaiwa", 0.25, 1900.0, 37.5, 700_000_000)
THEIRS = Measured("llama.cpp (b1)", 0.5, 100.0, 30.0, 900_000_000)


def test_the_real_model_as_json(model_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(model_path), "--runs", "1", "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    report = json.loads(output.out)
    assert report["card"]["number_format"] == "Q4_1"
    assert report["kaiwa"]["decode_tokens_per_s"] > 0
    assert report["peer"] is None


def test_the_table_beside_a_peer() -> None:
    report = Report(CARD, 2, 5, 512, 64, OURS, 0.06, CARD.weights_bytes, 22.5e9, 40.0, 37.5 / 40, THEIRS)
    assert table(report) == (
        """\
tiny:1b (llama, 1.1 B parameters, Q4_0), native (AVX2, 2 threads), median of 5 runs

                             kaiwa  llama.cpp (b1)
load                        0.25 s          0.50 s
prompt, 512 tokens  1,900 tokens/s    100 tokens/s  19.00 x
answer, 64 tokens      38 tokens/s     30 tokens/s   1.25 x
peak memory                 700 MB          900 MB

The first token came 0.06 s after a question of ten tokens.
Memory reads 22 GB/s, which allows 40 tokens/s: the answer reaches 94 % of that."""
    )


def test_an_unknown_peer_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--against", "lama.cpp"]) == 2
    error = capsys.readouterr().err
    assert error == "error: there is no runtime 'lama.cpp' to measure\nhint: did you mean 'llama.cpp'?\n"
