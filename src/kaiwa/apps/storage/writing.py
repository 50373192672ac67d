"""Writing entries into the tables."""

from __future__ import annotations

import json

from sqlalchemy import Connection, delete, insert

from kaiwa.apps.storage.entries import (
    CreateChat,
    DeleteChat,
    Entry,
    KeepFile,
    KeepPayload,
    KeepText,
    KeepWaiting,
    RenameChat,
)
from kaiwa.apps.storage.tables import CHATS, EVENTS, FILES, PAYLOADS, TEXTS


def write(entry: Entry, chat_id: str, connection: Connection) -> None:
    """Write one entry. What is there already is replaced, so that writing twice is writing once."""
    match entry:
        case CreateChat(chat, owner):
            values = chat.model_dump() | {"owner": owner, "num_events": 0}
            connection.execute(insert(CHATS).values(values))
        case RenameChat(title):
            connection.execute(CHATS.update().where(CHATS.c.id == chat_id).values(title=title))
        case KeepWaiting():
            connection.execute(CHATS.update().where(CHATS.c.id == chat_id).values(run_state="queued"))
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
