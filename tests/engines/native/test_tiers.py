"""The kernels for Arm beside the portable ones, in an emulator: `compare_tiers.cpp` is compiled for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from number_formats import FORMATS, random_weights
from pages import ROOT
from required import require_tool

NATIVE = ROOT / "native"
SOURCES = [
    Path(__file__).with_name("compare_tiers.cpp"),
    *(NATIVE / name for name in ("matrix.cpp", "pack.cpp", "pack_parts.cpp", "thread_pool.cpp")),
    *(NATIVE / "kernels" / name for name in ("kernels.cpp", "tier_portable.cpp")),
]
ROWS, COLUMNS = 40, 512
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-static", "-pthread", f"-I{NATIVE}"]
ROUNDING = 1e-5
"""Of the largest number: tiers add in other orders, and fuse multiplications with additions or not."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with random weights in every number format of one tensor."""
    folder = tmp_path_factory.mktemp("weights")
    for number_format in FORMATS:
        data = random_weights(number_format, ROWS, COLUMNS, np.random.default_rng(0))
        (folder / f"{number_format.name}.bin").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`compare_tiers` for 64-bit Arm."""
    compiler, folder = require_tool("aarch64-linux-gnu-g++"), tmp_path_factory.mktemp("arm")
    neon = ["-march=armv8.2-a+dotprod+fp16", "-c", NATIVE / "kernels" / "tier_neon.cpp", "-o", folder / "neon.o"]
    subprocess.run([compiler, *FLAGS, *neon], check=True)
    subprocess.run([compiler, *FLAGS, *SOURCES, folder / "neon.o", "-o", folder / "compare_tiers"], check=True)
    return folder / "compare_tiers"


def differences(processor: str, program: Path, weights: Path) -> dict[tuple[str, str], float]:
    """What the program says on an emulated processor: the largest difference by tier and kernel."""
    command = [require_tool("qemu-aarch64-static"), "-cpu", processor, program, weights, str(ROWS), str(COLUMNS)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[tuple[str, str], float] = {}
    for line in output.splitlines():
        tier, kernel, difference = line.split("\t")
        found[tier, kernel] = max(found.get((tier, kernel), 0.0), float(difference))
    return found


def test_neon_computes_what_the_portable_tier_does(program: Path, weights: Path) -> None:
    found = differences("cortex-a76", program, weights)
    assert {tier for tier, _ in found} == {"neon", "portable"}
    assert {key: difference for key, difference in found.items() if not difference <= ROUNDING} == {}


def test_a_processor_without_dot_products_has_the_portable_tier_only(program: Path, weights: Path) -> None:
    assert {tier for tier, _ in differences("cortex-a57", program, weights)} == {"portable"}
