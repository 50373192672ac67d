"""Every kernel tier that this machine has, one after the other."""

from __future__ import annotations

import pytest

from kaiwa.engines.native import _native


@pytest.fixture(params=["portable", "avx2", "avx512", "amx", "neon"])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel tier in force during the test. Tiers that the processor lacks are skipped, in CI too."""
    tier = str(request.param)
    if tier not in _native.available_isas():
        pytest.skip(f"this processor has no {tier}")
    monkeypatch.setenv("KAIWA_ISA", tier)
    return tier
