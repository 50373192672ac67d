"""Closing: what holds something until it is closed, and may stand in a `with`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Gives back what it holds by `close`, or at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Give it back. Twice is once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
