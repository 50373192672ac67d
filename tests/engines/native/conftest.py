"""Every kernel tier that this machine has, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(params=["portable", "avx2", "avx512"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernel tier in force during the test. Tiers that the processor lacks are skipped, in CI too."""
    from kaiwa.engines.native import _native

    if request.param not in _native.available_isas():
        pytest.skip(f"this processor has no {request.param}")
    best = _native.available_isas()[-1]
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(best)
