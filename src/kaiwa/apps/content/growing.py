"""What a thing has to offer that grows until its run ends."""

from __future__ import annotations

from typing import Literal, Protocol

Outcome = Literal["done", "stopped", "failed"]


class Growing(Protocol):
    """A message that streams, or a step in use."""

    def end(self, outcome: Outcome) -> None:
        """It grows no more, because the run that it began in has ended so."""
        ...
