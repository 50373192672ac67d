"""ChatSettings: what a person may set for a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kaiwa.apps.content.widgets import InputWidget, Tab, fits
from kaiwa.apps.context import current
from kaiwa.apps.protocol.events import SettingsDefined
from kaiwa.apps.protocol.widgets import SettingValue
from kaiwa.apps.work.session import Session
from kaiwa.errors import InvalidOption, Refused, did_you_mean


class ChatSettings:
    """Widgets, or tabs of widgets.

    `send` shows them and gives their values by id; `on_settings_update` hears of changes, and so does
    `user_session.get("chat_settings")`. A chat that goes on after its session has ended keeps what was set in it.

    Raises `InvalidOption` where two widgets have the same id.
    """

    def __init__(self, inputs: Sequence[InputWidget] | Sequence[Tab]) -> None:
        tabs = [one for one in inputs if isinstance(one, Tab)]
        loose = [one for one in inputs if isinstance(one, InputWidget)]
        if tabs and loose:
            raise InvalidOption("settings are either widgets or tabs of widgets, not both", hint="put all into tabs")
        self.tabs = tabs or [Tab("", "", loose)]
        ids = [widget.id for tab in self.tabs for widget in tab.inputs]
        if doubles := {one for one in ids if ids.count(one) > 1}:
            raise InvalidOption(
                f"there are two widgets with the id {min(doubles)!r}", hint="give each an id of its own"
            )

    async def send(self) -> dict[str, Any]:
        """Show the settings with their initial values, which are returned."""
        return self._define(current().session.settings_before)

    async def refresh(self) -> dict[str, Any]:
        """Show other settings, with the values that the chat has already where these fit."""
        return self._define(current().session.settings)

    def _define(self, kept: Mapping[str, SettingValue]) -> dict[str, Any]:
        session = current().session
        session.tabs = tuple(tab.record() for tab in self.tabs)
        values: dict[str, SettingValue] = {}
        for tab in session.tabs:
            for widget in tab.widgets:
                fitting = widget.id in kept and fits(widget, kept[widget.id])
                values[widget.id] = kept[widget.id] if fitting else widget.initial
        session.settings, session.settings_before = values, {}
        current().emit(SettingsDefined(tabs=session.tabs, values=values))
        return plain(values)


def check(session: Session, values: Mapping[str, SettingValue]) -> None:
    """Whether a page may set these values. Raises `Refused` with the first that it may not."""
    widgets = {widget.id: widget for tab in session.tabs for widget in tab.widgets}
    for name, value in values.items():
        if name not in widgets:
            raise Refused("invalid", f"this chat has no setting {name!r}", hint=did_you_mean(name, widgets))
        if not fits(widgets[name], value):
            raise Refused("invalid", f"the setting {name!r} cannot be {value!r}")


def plain(values: Mapping[str, SettingValue]) -> dict[str, Any]:
    """Values as apps know them: lists, not tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
