"""The emitter: what an app does to a chat's pages beside messages. Names are Chainlit's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from kaiwa.apps.content.modes import Mode
from kaiwa.apps.protocol.events import CommandsDefined, ModesDefined
from kaiwa.apps.protocol.frames import Toast, WindowMessage
from kaiwa.apps.protocol.records import SlashCommand
from kaiwa.apps.work.session import Session
from kaiwa.errors import InvalidOption, did_you_mean

ToastKind = Literal["info", "success", "warning", "error"]
_COMMAND_KEYS = {
    "id": "id",
    "description": "description",
    "icon": "icon",
    "button": "is_button",
    "persistent": "is_persistent",
    "selected": "is_selected",
}


class Emitter:
    """Acts on the pages of one chat."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def send_toast(self, message: str, type: ToastKind = "info") -> None:
        """Show a short word that goes by itself."""
        if type not in get_args(ToastKind):
            raise InvalidOption(f"there is no toast of type {type!r}", hint=did_you_mean(type, get_args(ToastKind)))
        self._session.post(Toast(chat_id=self._session.chat_id, kind=type, text=message))

    async def set_commands(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Offer commands for the next messages.

        Each is a dictionary with an `id`, and where wanted `description`, `icon`, `button`, `persistent`, `selected`.

        Raises `InvalidOption` for a key that a command has not.
        """
        self._session.emit(CommandsDefined(commands=tuple(_command(command) for command in commands)))

    async def set_modes(self, modes: Sequence[Mode]) -> None:
        """Offer choices beside the composer; messages carry what was chosen in `modes`."""
        self._session.emit(ModesDefined(modes=tuple(mode.record() for mode in modes)))

    async def send_window_message(self, data: Any) -> None:
        """Tell something to the page around this one, by `postMessage`."""
        self._session.post(WindowMessage(chat_id=self._session.chat_id, data=data))


def _command(command: Mapping[str, Any]) -> SlashCommand:
    for key in command:
        if key not in _COMMAND_KEYS:
            raise InvalidOption(f"a command has no {key!r}", hint=did_you_mean(key, _COMMAND_KEYS))
    if "id" not in command:
        raise InvalidOption(f"the command {dict(command)!r} has no id", hint='give it one: {"id": "search", …}')
    fields = {_COMMAND_KEYS[key]: value for key, value in command.items() if value is not None}
    return SlashCommand.model_validate(fields)
