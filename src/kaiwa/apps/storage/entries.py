"""Entries: what the log writes besides events, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiwa.apps.protocol.records import Chat


@dataclass(frozen=True, slots=True)
class CreateChat:
    """A new chat, without events."""

    chat: Chat
    owner: str


@dataclass(frozen=True, slots=True)
class RenameChat:
    """A title that somebody chose."""

    title: str


@dataclass(frozen=True, slots=True)
class DeleteChat:
    """The end of a chat and of all that belongs to it."""


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Messages wait for an answer, although nothing runs: the server ended before their turn came."""


@dataclass(frozen=True, slots=True)
class KeepText:
    """What a message says now, for the search."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class KeepPayload:
    """What a button means."""

    action_id: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeepFile:
    """A file whose bytes are in the folder already."""

    file_id: str
    name: str
    mime: str
    num_bytes: int


Entry = CreateChat | RenameChat | DeleteChat | KeepWaiting | KeepText | KeepPayload | KeepFile
