from __future__ import annotations

from collections.abc import Iterator

import pytest

from live import Live, serve
from small_model import echoes


@pytest.fixture(scope="module")
def echo() -> Iterator[Live]:
    """A server whose model repeats the last message, for the tests of one file."""
    with serve(echoes()) as live:
        yield live
