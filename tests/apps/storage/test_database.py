from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from kaiwa.apps.protocol.records import Chat
from kaiwa.apps.storage import migrations
from kaiwa.apps.storage.database import CHATS_PER_PAGE, Database
from kaiwa.apps.storage.entries import CreateChat, KeepText
from kaiwa.apps.storage.tables import METADATA
from kaiwa.apps.storage.writing import write
from kaiwa.errors import StorageFailed


def add(database: Database, chat_id: str, *, owner: str = "local", at: float = 0, num_messages: int = 1) -> None:
    chat = Chat(id=chat_id, title=f"chat {chat_id}", created_at=at, updated_at=at, num_messages=num_messages)
    with database.engine.begin() as connection:
        write(CreateChat(chat, owner), chat_id, connection)


def test_migrations_make_the_tables_that_the_code_means(tmp_path: Path) -> None:
    database = Database.in_file(tmp_path / "chats.sqlite3")
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
    database.close()
    heads = ScriptDirectory(str(Path(migrations.__file__).parent)).get_heads()
    assert heads == [migrations.HEAD]


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        database = Database.in_file(tmp_path / "chats.sqlite3")
        if database.chat("a") is None:
            add(database, "a")
        database.close()


def test_what_a_newer_kaiwa_made_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    Database.in_file(path).close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StorageFailed, match="made by a newer Kaiwa: version 9999"):
        Database.in_file(path)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    path.write_text("This is not a database, but it is long enough to look at." * 100)
    with pytest.raises(StorageFailed, match="cannot be opened"):
        Database.in_file(path)


@given(st.lists(st.floats(0, 5), max_size=2 * CHATS_PER_PAGE + 20))
@settings(max_examples=10, deadline=None)
def test_pages_of_the_list_show_every_chat_once_and_the_latest_first(times: list[float]) -> None:
    database = Database("sqlite://")
    for number, at in enumerate(times):
        add(database, f"c{number}", at=at)
    add(database, "empty", num_messages=0)
    add(database, "other", owner="bob")
    seen: list[Chat] = []
    before = None
    while True:
        page, before = database.chats("local", before=before)
        seen += page
        if before is None:
            break
    assert [chat.updated_at for chat in seen] == sorted(times, reverse=True)
    assert len({chat.id for chat in seen}) == len(times)
    database.close()


def test_the_search_takes_every_character_as_it_is() -> None:
    database = Database("sqlite://")
    for chat_id, words in (("a", "100 % _sure_"), ("b", "100 of them"), ("c", r"back\slash")):
        add(database, chat_id)
        with database.engine.begin() as connection:
            write(KeepText("m", words), chat_id, connection)
    found = {
        search: [chat.id for chat in database.chats("local", search=search)[0]] for search in ("%", "_s", "\\", "100")
    }
    assert found == {"%": ["a"], "_s": ["a"], "\\": ["c"], "100": ["b", "a"]}
    database.close()
