"""Entries: what the log writes besides events, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, insert

from kaiwa.apps.protocol.records import Chat
from kaiwa.apps.storage.tables import CHATS, EVENTS, FILES, PAYLOADS, TEXTS


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


Entry = CreateChat | RenameChat | DeleteChat | KeepText | KeepPayload | KeepFile


def write(entry: Entry, chat_id: str, connection: Connection) -> None:
    """Write one entry. What is there already is replaced, so that writing twice is writing once."""
    match entry:
        case CreateChat(chat, owner):
            values = chat.model_dump() | {"owner": owner, "num_events": 0}
            connection.execute(insert(CHATS).values(values))
        case RenameChat(title):
            connection.execute(CHATS.update().where(CHATS.c.id == chat_id).values(title=title))
        case DeleteChat():
            for table in (FILES, PAYLOADS, TEXTS, EVENTS):
                connection.execute(delete(table).where(table.c.chat_id == chat_id))
            connection.execute(delete(CHATS).where(CHATS.c.id == chat_id))
        case KeepText(message_id, text):
            key = (TEXTS.c.chat_id == chat_id) & (TEXTS.c.message_id == message_id)
            connection.execute(delete(TEXTS).where(key))
            connection.execute(insert(TEXTS).values(chat_id=chat_id, message_id=message_id, body=text))
        case KeepPayload(action_id, payload):
            key = (PAYLOADS.c.chat_id == chat_id) & (PAYLOADS.c.action_id == action_id)
            connection.execute(delete(PAYLOADS).where(key))
            body = json.dumps(payload, ensure_ascii=False)
            connection.execute(insert(PAYLOADS).values(chat_id=chat_id, action_id=action_id, body=body))
        case KeepFile(file_id, name, mime, num_bytes):
            row = {"id": file_id, "chat_id": chat_id, "name": name, "mime": mime, "num_bytes": num_bytes}
            connection.execute(insert(FILES).values(row))
