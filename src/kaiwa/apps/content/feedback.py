"""Feedback: what a person thinks of a message. Names are Chainlit's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Feedback:
    """`value` is 1, -1, or 0 where it was taken back; `forId` is the message's id."""

    forId: str  # noqa: N815  (Chainlit's name)
    value: Literal[-1, 0, 1]
    comment: str | None = None
    threadId: str | None = None  # noqa: N815
