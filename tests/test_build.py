"""Building on a machine that lacks something says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pages import ROOT
from required import require_tool


def test_a_missing_compiler_is_named_in_plain_words(tmp_path: Path) -> None:
    outcome = subprocess.run(
        [require_tool("cmake"), "-S", ROOT, "-B", tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"CXX": str(tmp_path / "no-compiler")},
        check=False,
    )
    assert outcome.returncode != 0
    words = " ".join(outcome.stderr.split())
    assert "Kaiwa needs a C++20 compiler" in words
    assert "apt install g++" in words
