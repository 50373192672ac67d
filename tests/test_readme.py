"""The README keeps its word: short before the first example, and every example runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pages import ROOT, code_blocks

README = ROOT / "README.md"
MAX_WORDS = 100
MAX_LINES = 8


def test_the_first_example_is_short_and_early() -> None:
    text = README.read_text(encoding="utf-8")
    first = code_blocks(README, "python")[0]
    assert len(first.splitlines()) <= MAX_LINES
    assert len(text[: text.index(first) + len(first)].split()) <= MAX_WORDS


def test_all_examples_run_one_after_the_other(model_path: Path, tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text("\n".join(code_blocks(README, "python")), encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=240, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    assert "tokens per second" in outcome.stdout
    assert "did you mean 'temperature'?" in outcome.stdout
