"""Reading a chat's log from its beginning."""

from __future__ import annotations

from collections.abc import Iterator

from kaiwa.apps.protocol.events import EVENT, Event
from kaiwa.apps.storage.database import Database
from kaiwa.apps.storage.growth import coalesce


def replay(database: Database, chat_id: str) -> Iterator[Event]:
    """All events of a chat, neighbouring pieces of text as one. Waits for the disk."""
    since = 0
    while bodies := database.events(chat_id, since):
        since += len(bodies)
        yield from (EVENT.validate_json(body) for body in coalesce(bodies))
