"""Commands: what a page asks of the server. Each is answered by `accepted` or `rejected` with its `id`.

A page that does not know whether a command arrived sends it again with the same ids: nothing happens twice.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from kaiwa.apps.protocol.records import Record
from kaiwa.apps.protocol.widgets import SettingValue

MAX_TEXT_CHARS = 4_000_000
"""The longest message. What is longer is refused in words."""

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Made by whoever makes the thing; a page uses `crypto.randomUUID()`."""


class _Command(Record):
    id: Id
    """Of this command."""


class _ChatCommand(_Command):
    chat_id: Id


class Hello(_Command):
    """The first command of every connection. Answered by `welcome`."""

    type: Literal["hello"] = "hello"
    version: int
    language: str = "en"
    """What the browser asks for: "ja", "en-GB"."""


class ListChats(_Command):
    """The latest chats in which somebody said something; those that contain `search`. Answered by `chat_list`."""

    type: Literal["list_chats"] = "list_chats"
    search: str = ""
    before: str | None = None
    """The `next` of the `chat_list` before."""


class NewChat(_ChatCommand):
    """Begin a chat, whose id the page makes, and follow it."""

    type: Literal["new_chat"] = "new_chat"
    profile: str | None = None


class OpenChat(_ChatCommand):
    """Follow a chat: `opened`, then `events` after `since`, then those that happen. 0 is from the beginning."""

    type: Literal["open_chat"] = "open_chat"
    since: int = Field(0, ge=0)


class LeaveChat(_ChatCommand):
    """Follow the chat no longer. It goes on."""

    type: Literal["leave_chat"] = "leave_chat"


class EndChat(_ChatCommand):
    """End the chat: what runs is stopped, and its memory is given back."""

    type: Literal["end_chat"] = "end_chat"


class RenameChat(_ChatCommand):
    """Give the chat another title."""

    type: Literal["rename_chat"] = "rename_chat"
    title: str = Field(max_length=200)


class DeleteChat(_ChatCommand):
    """End the chat and forget it, files included."""

    type: Literal["delete_chat"] = "delete_chat"


class Say(_ChatCommand):
    """Say something. Where a run is going on, the message waits for it in the open."""

    type: Literal["say"] = "say"
    message_id: Id
    text: str
    file_ids: tuple[Id, ...] = Field((), max_length=100)
    command: str | None = None
    modes: dict[str, str] = Field(default_factory=dict)


class WithdrawMessage(_ChatCommand):
    """Take a message back that is still queued."""

    type: Literal["withdraw_message"] = "withdraw_message"
    message_id: Id


class EditMessage(_ChatCommand):
    """Say something else instead of an earlier message: that and all after it are removed."""

    type: Literal["edit_message"] = "edit_message"
    message_id: Id
    text: str


class Regenerate(_ChatCommand):
    """Remove what came after a message, and answer it again."""

    type: Literal["regenerate"] = "regenerate"
    message_id: Id


class Stop(_ChatCommand):
    """Stop the run."""

    type: Literal["stop"] = "stop"


class Answer(_ChatCommand):
    """Answer a question: with `text`, `file_ids`, an `action_id` or an element's `values`, as its kind wants."""

    type: Literal["answer"] = "answer"
    ask_id: Id
    text: str | None = None
    file_ids: tuple[Id, ...] | None = Field(None, max_length=100)
    action_id: Id | None = None
    values: dict[str, Any] | None = None


class Press(_ChatCommand):
    """Press a button."""

    type: Literal["press"] = "press"
    action_id: Id


class ChangeSettings(_ChatCommand):
    """Set some of the chat's settings; `is_final` is False while a person is still trying out."""

    type: Literal["change_settings"] = "change_settings"
    values: dict[str, SettingValue]
    is_final: bool = True


class Rate(_ChatCommand):
    """Say what one thinks of a message."""

    type: Literal["rate"] = "rate"
    message_id: Id
    value: Literal[-1, 0, 1]
    comment: str = Field("", max_length=10_000)


class PostWindowMessage(_ChatCommand):
    """What the page around this one said (`window.postMessage`)."""

    type: Literal["post_window_message"] = "post_window_message"
    data: Any


class CallReturned(_ChatCommand):
    """What a function of the page around this one gave back, for the `call_id` of `call_function`."""

    type: Literal["call_returned"] = "call_returned"
    call_id: Id
    result: Any = None
    error: str | None = None


Command = Annotated[
    Hello
    | ListChats
    | NewChat
    | OpenChat
    | LeaveChat
    | EndChat
    | RenameChat
    | DeleteChat
    | Say
    | WithdrawMessage
    | EditMessage
    | Regenerate
    | Stop
    | Answer
    | Press
    | ChangeSettings
    | Rate
    | PostWindowMessage
    | CallReturned,
    Field(discriminator="type"),
]

COMMAND: TypeAdapter[Command] = TypeAdapter(Command, config=ConfigDict(defer_build=True))
"""Reads a command from what a page sent."""
