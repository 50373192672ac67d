"""What a test needs of its machine: without it the test skips on a person's machine, and fails in CI."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def absent(reason: str) -> NoReturn:
    """Say why this test cannot run here."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have what its tests need: {reason}", pytrace=False)
    pytest.skip(reason)


def require_tool(command: str) -> str:
    """The path of a command that a test runs, from this environment or the machine."""
    path = shutil.which(command, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if path is None:
        absent(f"the command {command} is not installed")
    return path
