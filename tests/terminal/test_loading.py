"""Waiting for a model: a bar for people, errors and results for the program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kaiwa.errors import ModelNotFound
from kaiwa.events import Progress
from kaiwa.terminal.loading import load
from pseudo_terminal import terminal

SCRIPT = [sys.executable, str(Path(__file__).with_name("slow_load.py"))]


def test_a_long_load_shows_a_bar_which_leaves_no_trace(tmp_path: Path) -> None:
    with terminal(SCRIPT, tmp_path) as running:
        running.wait_for("downloading")
        running.wait_for("/100.0 MB")
        running.wait_for("loading")
        running.wait_for("/10")
        assert running.wait_for_end() == 0
        assert running.everything == "here it is"


def test_without_a_terminal_there_is_no_bar() -> None:
    done = subprocess.run(SCRIPT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("here it is\n", "")


def test_what_the_work_raises_is_raised() -> None:
    def work(on_progress: Callable[[Progress], None]) -> str:
        raise ModelNotFound("there is no model 'x'")

    with pytest.raises(ModelNotFound, match="no model 'x'"):
        load(work)


def test_other_things_happen_meanwhile() -> None:
    order: list[str] = []
    assert load(lambda on_progress: "model", meanwhile=lambda: order.append("imports")) == "model"
    assert order == ["imports"]
