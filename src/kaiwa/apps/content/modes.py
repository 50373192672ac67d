"""Modes: choices beside the composer, which go along with every message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kaiwa.apps.protocol import records


@dataclass(frozen=True, slots=True)
class ModeOption:
    """One value of a mode."""

    id: str
    name: str
    description: str | None = None
    icon: str | None = None
    default: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """A choice of one among `options`."""

    id: str
    name: str
    options: Sequence[ModeOption] = field(default_factory=tuple)

    def record(self) -> records.Mode:
        """As pages know it."""
        options = tuple(
            records.ModeOption(
                id=option.id,
                name=option.name,
                description=option.description or "",
                icon=option.icon,
                is_default=option.default,
            )
            for option in self.options
        )
        return records.Mode(id=self.id, name=self.name, options=options)
