"""Actions: buttons below a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kaiwa.apps.context import current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import ActionAdded, ActionRemoved
from kaiwa.apps.storage.entries import KeepPayload
from kaiwa.apps.work.ids import new_id


class Action:
    """A button that calls the hook `action_callback(name)`.

    `payload` stays on the server: a page sends the button's id and nothing else. `label` is what is written on it, by
    default its name.
    """

    def __init__(
        self,
        name: str,
        payload: Mapping[str, Any] | None = None,
        label: str = "",
        tooltip: str = "",
        icon: str | None = None,
        *,
        id: str | None = None,
    ) -> None:
        self.name = name
        self.payload = dict(payload or {})
        self.label = label
        self.tooltip = tooltip
        self.icon = icon
        self.id = id or new_id()
        self.for_id: str | None = None

    async def send(self, for_id: str) -> Self:
        """Show the button below the message with this id."""
        self.for_id = for_id
        current().emit(self.entry(), ActionAdded(action=self.record()))
        return self

    async def remove(self) -> None:
        """Take the button away."""
        current().emit(ActionRemoved(action_id=self.id))

    def record(self) -> records.Action:
        """As pages know it."""
        return records.Action(
            id=self.id,
            name=self.name,
            label=self.label or self.name,
            tooltip=self.tooltip,
            icon=self.icon,
            for_id=self.for_id,
        )

    def entry(self) -> KeepPayload:
        """As the log keeps it."""
        return KeepPayload(self.id, self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Action:
        """The button that `to_dict` gave."""
        fields = {name: data[name] for name in ("name", "payload", "label", "tooltip", "icon", "id")}
        action = cls(**fields)
        action.for_id = data["forId"]
        return action

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        names = ("id", "name", "payload", "label", "tooltip", "icon")
        return {name: getattr(self, name) for name in names} | {"forId": self.for_id}
