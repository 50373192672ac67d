"""The log of all chats: one thread writes what happens, in order, and tells it on once it is written.

No page ever sees what a crash could still undo. Text that streams is gathered for `GATHER_S`, so that a token costs
next to nothing and at most that much is lost when the process is killed.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from sqlalchemy import Connection, insert, update
from sqlalchemy.exc import SQLAlchemyError

from kaiwa.apps.protocol.events import Event
from kaiwa.apps.protocol.records import Chat
from kaiwa.apps.storage.catalog import after
from kaiwa.apps.storage.database import Database
from kaiwa.apps.storage.entries import CreateChat, DeleteChat, Entry, KeepWaiting, RenameChat
from kaiwa.apps.storage.growth import Growth, Piece
from kaiwa.apps.storage.tables import CHATS, EVENTS
from kaiwa.apps.storage.writing import write
from kaiwa.errors import StorageFailed

GATHER_S = 0.04
RETRY_S = 0.5
MAX_KNOWN_CHATS = 1_000

_logger = logging.getLogger("kaiwa.apps")


@dataclass(frozen=True, slots=True)
class Written:
    """What a chat has got: the events after the offset `since`, as JSON. `chat` is its row where that has changed."""

    chat_id: str
    owner: str
    since: int
    bodies: tuple[str, ...]
    chat: Chat | None
    is_deleted: bool = False


Listener = Callable[[Sequence[Written]], None]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the writer remembers of a chat, so that it needs not read it again."""

    chat: Chat
    owner: str
    num_events: int


class Log:
    """The one writer of a database. Any thread may append; nothing here waits for the disk but `close`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._pending: dict[str, list[Event | Entry | Piece]] = {}
        self._waiting: list[Future[None]] = []
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._is_urgent = False
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="kaiwa-log", daemon=True)
        self._thread.start()

    def listen(self, listener: Listener) -> None:
        """Call `listener` in the writer's thread with everything that is written; it must not wait."""
        self._listeners = [*self._listeners, listener]

    def forget(self, listener: Listener) -> None:
        """Call it no more."""
        self._listeners = [other for other in self._listeners if other != listener]

    def append(self, chat_id: str, *items: Event | Entry) -> None:
        """Add what has happened."""
        with self._changed:
            self._pending.setdefault(chat_id, []).extend(items)
            self._is_urgent = True
            self._changed.notify()

    def grow(self, chat_id: str, growth: Growth, text: str) -> None:
        """Add text to something that grows. What follows within a moment becomes the same event."""
        with self._changed:
            if not self._pending:
                self._changed.notify()
            items = self._pending.setdefault(chat_id, [])
            last = items[-1] if items else None
            if isinstance(last, Piece) and last.growth is growth:
                last.texts.append(text)
            else:
                items.append(Piece(growth, [text]))

    def settled(self) -> Future[None]:
        """Done when everything that was appended so far is written, and has been told on."""
        future: Future[None] = Future()
        with self._changed:
            self._waiting.append(future)
            self._is_urgent = True
            self._changed.notify()
        return future

    def close(self) -> None:
        """Write what is left, and end. Twice is once."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._waiting or self._is_closing)
                self._changed.wait_for(lambda: self._is_urgent or self._is_closing, GATHER_S)
                pending, self._pending = self._pending, {}
                waiting, self._waiting = self._waiting, []
                self._is_urgent = False
                if not pending and not waiting:
                    return
            written = self._write_at_last([_Batch(chat_id, items) for chat_id, items in pending.items()])
            if written:
                for listener in self._listeners:
                    listener(written)
            for future in waiting:
                if written is None:
                    future.set_exception(StorageFailed("the server ends, and what happened last cannot be written"))
                else:
                    future.set_result(None)

    def _write_at_last(self, batches: list[_Batch]) -> list[Written] | None:
        """Write, again and again where it fails, until it is written, or the server ends: then it is None."""
        has_failed = False
        while True:
            try:
                with self._database.engine.begin() as connection:
                    written = [one for batch in batches if (one := self._write(batch, connection)) is not None]
            except SQLAlchemyError as error:
                self._known.clear()
                if not has_failed:
                    _logger.error("chats cannot be written, trying again until it works: %s", error)
                has_failed = True
                if self._is_closing:
                    return None
                threading.Event().wait(RETRY_S)
            else:
                if has_failed:
                    _logger.warning("chats are written again")
                return written

    def _write(self, batch: _Batch, connection: Connection) -> Written | None:
        known = self._remember(batch)
        if known is None:
            return None  # the chat was deleted while something in it still ran
        chat, num_events = known.chat, known.num_events
        rows = []
        for item in batch.items:
            if isinstance(item, Entry):
                write(item, chat.id, connection)
                if isinstance(item, DeleteChat):
                    self._known.pop(chat.id, None)
                    return Written(chat.id, known.owner, 0, (), None, is_deleted=True)
                if isinstance(item, RenameChat):
                    chat = chat.model_copy(update={"title": item.title})
                elif isinstance(item, KeepWaiting):
                    chat = chat.model_copy(update={"run_state": "queued"})
            else:
                num_events += 1
                chat = after(item, chat)
                rows.append({"chat_id": chat.id, "offset": num_events, "body": item.model_dump_json()})
        if rows:
            connection.execute(insert(EVENTS), rows)
            values = chat.model_dump(exclude={"id"}) | {"num_events": num_events}
            connection.execute(update(CHATS).where(CHATS.c.id == chat.id).values(values))
        self._known[chat.id] = replace(known, chat=chat, num_events=num_events)
        is_changed = chat != known.chat or batch.is_new
        bodies = tuple(str(row["body"]) for row in rows)
        return Written(chat.id, known.owner, known.num_events, bodies, chat if is_changed else None)

    def _remember(self, batch: _Batch) -> _Known | None:
        first = batch.items[0]
        if isinstance(first, CreateChat):
            batch.is_new = True
            return _Known(first.chat, first.owner, 0)
        if batch.chat_id in self._known:
            self._known.move_to_end(batch.chat_id)
            return self._known[batch.chat_id]
        found = self._database.chat(batch.chat_id)
        if len(self._known) >= MAX_KNOWN_CHATS:
            self._known.popitem(last=False)
        return None if found is None else _Known(*found)


class _Batch:
    """What is to be written of one chat. Text that grew becomes events here, once, however often writing is tried."""

    def __init__(self, chat_id: str, items: list[Event | Entry | Piece]) -> None:
        self.chat_id = chat_id
        self.items: list[Event | Entry] = [item.event() if isinstance(item, Piece) else item for item in items]
        self.is_new = False
