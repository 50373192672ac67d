"""The soak of loading and processes, in short: nothing is lost, and nothing is left."""

from __future__ import annotations

import sys

import pytest

import children
import soak
from kaiwa.runtime.process.model_process import in_child


@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_people_come_and_go_and_processes_are_killed() -> None:
    loads = [in_child("small", make=children.echoing, delay_s=0.002)] * 2
    tally, before, after = soak.run(loads, people=12, seconds=4, kill_every_s=0.7)
    assert tally.num_lost == 0
    assert tally.num_kills > 0
    assert tally.ends["answered"] > 5
    assert tally.ends["cancelled"] > 0
    assert tally.ends["left"] > 0
    assert after == before
