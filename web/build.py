"""Builds the page into src/kaiwa/ui/page, unless what is there was made of the same sources.

With `--check` it checks the page's types and runs the tests of its parts instead.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from node import WHEEL, npm_command

WEB = Path(__file__).resolve().parent
PAGE = WEB.parent / "src" / "kaiwa" / "ui" / "page"
STAMP = PAGE / ".made-of"
SOURCES = ("src/**/*", "public/**/*", "plugins/*", "index.html", "package-lock.json", "vite.config.ts", "tsconfig.json")


def fingerprint() -> str:
    """What the page is made of, as one number: a change of any source file changes it."""
    digest = hashlib.sha256()
    paths = sorted({path for pattern in SOURCES for path in WEB.glob(pattern) if path.is_file()})
    for path in paths:
        digest.update(f"{path.relative_to(WEB).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def npm(*arguments: str) -> None:
    """Run npm in `web/`, and end with what it said where it fails."""
    command = npm_command()
    if command is None:
        sys.exit(
            f"Kaiwa's page is built with Node, and this machine has none that is new enough.\n"
            f"Install it (pip install '{WHEEL}'), or build without the page: -C cmake.define.KAIWA_PAGE=OFF"
        )
    # Scripts of packages find Node by its name.
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [*command, *arguments],
        cwd=WEB,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"npm {' '.join(arguments)} failed in {WEB}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def install(*, is_for_tests: bool) -> None:
    """Fetch the packages of package-lock.json, unless they are there."""
    marker = WEB / "node_modules" / ".package-lock.json"
    is_there = marker.is_file() and marker.stat().st_mtime >= (WEB / "package-lock.json").stat().st_mtime
    has_tests = (WEB / "node_modules" / "vitest").is_dir()
    if not is_there or (is_for_tests and not has_tests):
        npm("ci", "--no-audit", "--no-fund", *([] if is_for_tests else ["--omit=dev"]))


def build() -> None:
    """Build the page."""
    made_of = fingerprint()
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == made_of:
        return
    install(is_for_tests=False)
    npm("run", "build")
    STAMP.write_text(made_of, encoding="utf-8")


def check() -> None:
    """Check types and run the tests of parts."""
    install(is_for_tests=True)
    npm("run", "check")
    npm("test")


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else build()
