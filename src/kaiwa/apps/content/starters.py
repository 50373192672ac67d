"""Starters and chat profiles: how a chat may begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kaiwa.apps.protocol import records


@dataclass(frozen=True, slots=True)
class Starter:
    """A first message to choose: `label` is on the button, `message` is what it says."""

    label: str
    message: str
    command: str | None = None
    icon: str | None = None

    def record(self) -> records.Starter:
        """As pages know it."""
        return records.Starter(label=self.label, message=self.message, command=self.command, icon=self.icon)


@dataclass(frozen=True, slots=True)
class StarterCategory:
    """Starters under one heading."""

    label: str
    icon: str | None = None
    starters: Sequence[Starter] = field(default_factory=tuple)

    def record(self) -> records.StarterCategory:
        """As pages know it."""
        starters = tuple(starter.record() for starter in self.starters)
        return records.StarterCategory(label=self.label, icon=self.icon, starters=starters)


@dataclass(frozen=True, slots=True)
class ChatProfile:
    """A kind of chat to begin; the app reads which from `user_session.get("chat_profile")`, its `name`."""

    name: str
    markdown_description: str = ""
    icon: str | None = None
    display_name: str | None = None
    default: bool = False
    starters: Sequence[Starter] | None = None

    def record(self) -> records.Profile:
        """As pages know it."""
        return records.Profile(
            name=self.name,
            display_name=self.display_name or self.name,
            description=self.markdown_description,
            icon=self.icon,
            is_default=self.default,
            starters=tuple(starter.record() for starter in self.starters or ()),
        )
