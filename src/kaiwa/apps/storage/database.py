"""The database of chats: SQLite in a file, or PostgreSQL by its URL. Reads only; `log` alone writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, create_engine, event, exists, inspect, or_, select, text, tuple_
from sqlalchemy.exc import SQLAlchemyError

from kaiwa.apps.protocol.records import Chat
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.storage.migrations import HEAD
from kaiwa.apps.storage.tables import CHATS, EVENTS, FILES, PAYLOADS, TEXTS
from kaiwa.errors import StorageFailed

CHATS_PER_PAGE = 50
EVENTS_PER_PAGE = 2000
_ROW = [column for column in CHATS.c if column.name not in ("owner", "num_events")]


class Database:
    """An open database with the tables of this version; older ones are brought up to it.

    Raises `StorageFailed` where it cannot be opened, or was made by a newer Kaiwa.
    """

    def __init__(self, url: str) -> None:
        try:
            self.engine = _engine(url)
            _migrate(self.engine)
        except SQLAlchemyError as error:
            raise StorageFailed(
                f"the chats at {url} cannot be opened: {error}", hint="check the path or URL"
            ) from error

    @classmethod
    def in_file(cls, path: Path) -> Database:
        """SQLite, in a file that is made where it does not exist."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(f"sqlite:///{path}")

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def chat(self, chat_id: str) -> tuple[Chat, str, int] | None:
        """A chat with its owner and its number of events; None where there is none."""
        with self._read() as connection:
            found = connection.execute(
                select(*_ROW, CHATS.c.owner, CHATS.c.num_events).where(CHATS.c.id == chat_id)
            ).one_or_none()
        return None if found is None else (_chat(found[:-2]), found[-2], found[-1])

    def chats(self, owner: str, *, search: str = "", before: str | None = None) -> tuple[list[Chat], str | None]:
        """A page of the chats in which somebody said something, the latest first, and where the next page begins."""
        query = select(*_ROW).where(CHATS.c.owner == owner, CHATS.c.num_messages > 0)
        if search:
            said = exists().where(TEXTS.c.chat_id == CHATS.c.id, TEXTS.c.body.icontains(search, autoescape=True))
            query = query.where(or_(CHATS.c.title.icontains(search, autoescape=True), said))
        if before is not None:
            updated_at, _, last_id = before.partition("/")
            query = query.where(tuple_(CHATS.c.updated_at, CHATS.c.id) < tuple_(float(updated_at), last_id))
        query = query.order_by(CHATS.c.updated_at.desc(), CHATS.c.id.desc()).limit(CHATS_PER_PAGE + 1)
        with self._read() as connection:
            chats = [_chat(row) for row in connection.execute(query)]
        if len(chats) <= CHATS_PER_PAGE:
            return chats, None
        last = chats[CHATS_PER_PAGE - 1]
        return chats[:CHATS_PER_PAGE], f"{last.updated_at!r}/{last.id}"

    def unfinished(self) -> list[str]:
        """The ids of the chats in which something runs, or ran when the server ended."""
        with self._read() as connection:
            return list(connection.scalars(select(CHATS.c.id).where(CHATS.c.run_state != "idle")))

    def events(self, chat_id: str, since: int, *, limit: int = EVENTS_PER_PAGE) -> list[str]:
        """Up to `limit` events after the offset `since`, as JSON."""
        query = select(EVENTS.c.body).where(EVENTS.c.chat_id == chat_id, EVENTS.c.offset > since)
        with self._read() as connection:
            return list(connection.scalars(query.order_by(EVENTS.c.offset).limit(limit)))

    def has_text(self, chat_id: str, message_id: str) -> bool:
        """Whether the message was said already."""
        query = select(TEXTS.c.message_id).where(TEXTS.c.chat_id == chat_id, TEXTS.c.message_id == message_id)
        with self._read() as connection:
            return connection.execute(query).first() is not None

    def payload(self, chat_id: str, action_id: str) -> dict[str, Any] | None:
        """What a button of this chat means."""
        query = select(PAYLOADS.c.body).where(PAYLOADS.c.chat_id == chat_id, PAYLOADS.c.action_id == action_id)
        with self._read() as connection:
            body = connection.scalar(query)
        return None if body is None else cast(dict[str, Any], json.loads(body))

    def file(self, file_id: str) -> tuple[str, KeepFile] | None:
        """The chat that a file belongs to, and what it is."""
        query = select(FILES.c.chat_id, FILES.c.id, FILES.c.name, FILES.c.mime, FILES.c.num_bytes)
        with self._read() as connection:
            found = connection.execute(query.where(FILES.c.id == file_id)).one_or_none()
        return None if found is None else (found[0], KeepFile(*found[1:]))

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StorageFailed(
                f"chats cannot be read: {error}", hint="is the disk there, and the database up?"
            ) from error


def _chat(row: Any) -> Chat:
    return Chat.model_validate(dict(zip((column.name for column in _ROW), row, strict=True)))


def _engine(url: str) -> Engine:
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, record: object) -> None:
    cursor = connection.cursor()
    # In WAL mode, "normal" survives the end of the process at any moment; only a power cut may take the last commits.
    for pragma in ("journal_mode=wal", "synchronous=normal", "foreign_keys=on", "busy_timeout=10000"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def _migrate(engine: Engine) -> None:
    version = None
    with engine.connect() as connection:
        if inspect(connection).has_table("alembic_version"):
            version = connection.scalar(text("select version_num from alembic_version"))
    if version == HEAD:
        return
    if version is not None and version > HEAD:
        raise StorageFailed(
            f"the chats at {engine.url} were made by a newer Kaiwa: version {version}, and this one knows {HEAD}",
            hint="upgrade Kaiwa, or choose another database",
        )
    # Slow to import, and needed once in the life of a database.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
