"""Users: who is logged in, as an app's authentication says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kaiwa.apps.protocol import records


@dataclass(slots=True)
class User:
    """Somebody who logged in. `identifier` is what their chats are kept under; `metadata` is the app's own."""

    identifier: str
    display_name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What to call them."""
        return self.display_name or self.identifier

    def record(self) -> records.User:
        """As pages know them."""
        return records.User(identifier=self.identifier, display_name=self.name)
