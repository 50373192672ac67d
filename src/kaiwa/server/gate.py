"""How many requests are let in: all up to a limit, and after it none until one has left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kaiwa.server.errors import ApiError

MAX_RETRY_S = 60
_MEMORY = 0.9
"""How much of its memory the average keeps when a request leaves."""


class Gate:
    """Counts the requests that are answered or wait."""

    def __init__(self, max_requests: int) -> None:
        self._max_requests = max_requests
        self._between_s = 1.0
        self._last_left_s = time.monotonic()
        self.num_inside = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for one request. Raises `ApiError` 429 where there is none."""
        if self.num_inside >= self._max_requests:
            raise self._refusal()
        self.num_inside += 1
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        now = time.monotonic()
        self._between_s = _MEMORY * self._between_s + (1 - _MEMORY) * (now - self._last_left_s)
        self._last_left_s = now
        self.num_inside -= 1

    def _refusal(self) -> ApiError:
        retry_s = min(MAX_RETRY_S, max(1, round(self._between_s)))
        return ApiError(
            429,
            f"{self.num_inside:,} requests are answered or wait, and no more are taken: "
            f"yours would be number {self.num_inside + 1:,}. Try again in {retry_s} s",
            code="queue_full",
            headers={"Retry-After": str(retry_s)},
        )
