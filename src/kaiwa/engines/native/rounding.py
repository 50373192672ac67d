"""The kernels that `weights.quantize` needs, on threads of their own."""

from __future__ import annotations

from kaiwa.engines.native import _native, threads


class Rounder:
    """Rounds weights and sums them up, on `num_threads`, or as many as help."""

    def __init__(self, num_threads: int | None = None) -> None:
        self._pool = _native.ThreadPool(threads.choose(num_threads))

    def round(self, data: memoryview, format: str, to: str) -> bytes:
        """Numbers of a plain format in blocks of another. Raises `OverflowError` where one is not finite."""
        return _native.quantize(format, data, to, self._pool)

    def checksum(self, data: memoryview) -> int:
        """A number of 64 bits that changes when any byte does."""
        return _native.checksum(data, self._pool)
