"""What the log promises: order, no gaps, nothing told before it is written, and every text as it was."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy.exc import OperationalError

from kaiwa.apps.protocol.events import EVENT, MessageAdded, PartAdded, RunFinished, RunStarted, TextAdded
from kaiwa.apps.protocol.records import Chat, Message, TextPart
from kaiwa.apps.storage.catalog import text_of, title_of
from kaiwa.apps.storage.database import Database
from kaiwa.apps.storage.entries import CreateChat, DeleteChat, KeepText
from kaiwa.apps.storage.growth import Growth, coalesce, num_utf16_units
from kaiwa.apps.storage.log import Log, Written
from kaiwa.apps.storage.replay import replay
from kaiwa.apps.work.chat_state import ChatState


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database.in_file(tmp_path / "chats.sqlite3")
    yield database
    database.close()


@pytest.fixture
def log(database: Database) -> Iterator[Log]:
    log = Log(database)
    yield log
    log.close()


def new_chat(log: Log, chat_id: str = "chat", owner: str = "local") -> None:
    log.append(chat_id, CreateChat(Chat(id=chat_id, title="", created_at=1, updated_at=1), owner))


def message(message_id: str, text: str = "", role: str = "assistant") -> MessageAdded:
    return MessageAdded(
        message=Message(id=message_id, role=role, author="x", created_at=1, parts=(TextPart(text=text),))  # type: ignore[arg-type]
    )


def growth_of(message_id: str) -> Growth:
    return Growth(lambda start, text: TextAdded(message_id=message_id, part=0, start=start, text=text))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("mn"), st.one_of(st.none(), st.text(max_size=4))), max_size=40
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mixture_of_texts_and_events_is_kept_in_order(
    database: Database, actions: list[tuple[str, str, str | None]]
) -> None:
    log = Log(database)
    told: list[Written] = []
    log.listen(told.extend)
    chats = {name: uuid.uuid4().hex for name in "ab"}
    texts = {(name, message_id): "" for name in "ab" for message_id in "mn"}
    growths = {key: growth_of(key[1]) for key in texts}
    for chat_id in chats.values():
        new_chat(log, chat_id)
        log.append(chat_id, message("m"), message("n"))
    for name, message_id, text in actions:
        if text is None:
            log.append(chats[name], RunStarted(run_id="r", cause="message"), RunFinished(run_id="r", outcome="done"))
        else:
            log.grow(chats[name], growths[name, message_id], text)
            texts[name, message_id] += text
    log.close()
    for name, chat_id in chats.items():
        bodies = database.events(chat_id, 0)
        assert [body for one in told if one.chat_id == chat_id for body in one.bodies] == bodies
        state = ChatState()
        for body in bodies:
            event = EVENT.validate_json(body)
            if isinstance(event, TextAdded):
                assert event.start == num_utf16_units(text_of(state.messages[event.message_id]))
            state.apply(event)
        for message_id in "mn":
            assert text_of(state.messages[message_id]) == texts[name, message_id]
        assert ChatState.replayed(replay(database, chat_id)) == state, "joined pieces draw the same chat"


def test_offsets_have_no_gaps_and_continue_where_another_log_ended(database: Database) -> None:
    told: list[Written] = []
    for part in range(3):
        log = Log(database)
        log.listen(told.extend)
        if part == 0:
            new_chat(log)
        for number in range(20):
            log.append("chat", message(f"{part}-{number}"))
        log.close()
    events = [one for one in told if one.bodies]
    for one, following in itertools.pairwise(events):
        assert following.since == one.since + len(one.bodies)
    found = database.chat("chat")
    assert found is not None
    assert found[2] == 60


def test_nothing_is_told_before_it_is_written(database: Database, log: Log) -> None:
    seen: list[bool] = []

    def listener(written: Sequence[Written]) -> None:
        seen.extend(database.events(one.chat_id, one.since) == list(one.bodies) for one in written)

    new_chat(log)
    log.listen(listener)
    for number in range(20):
        log.append("chat", message(str(number)))
        time.sleep(0.001)
    log.settled().result(5)
    assert seen
    assert all(seen)


def test_many_tokens_become_few_events_at_once(database: Database, log: Log) -> None:
    new_chat(log)
    log.append("chat", message("m"))
    growth = growth_of("m")
    for _ in range(10_000):
        log.grow("chat", growth, "x")
    log.settled().result(5)
    found = database.chat("chat")
    assert found is not None
    assert found[2] < 10
    started_at = time.monotonic()
    log.grow("chat", growth, "y")
    while not database.events("chat", found[2]):
        assert time.monotonic() - started_at < 1
        time.sleep(0.002)
    assert time.monotonic() - started_at < 0.3, "text that streams is on disk soon"


def test_threads_that_write_together_lose_nothing(database: Database, log: Log) -> None:
    new_chat(log)

    def work(name: int) -> None:
        for number in range(50):
            log.append("chat", message(f"{name}-{number}"))

    threads = [threading.Thread(target=work, args=[name]) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.settled().result(5)
    state = ChatState.replayed(replay(database, "chat"))
    assert len(state.messages) == 400
    for name in range(8):
        own = [message_id for message_id in state.messages if message_id.startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(50)]


def test_a_disk_that_fails_for_a_while_costs_nothing(
    database: Database, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    new_chat(log)
    log.append("chat", message("m"))
    log.settled().result(5)
    problems = [OperationalError("insert", {}, Exception("disk full"))] * 2

    def fail(*arguments: object) -> None:
        if problems:
            raise problems.pop()

    sqlalchemy_event.listen(database.engine, "commit", fail)
    growth = growth_of("m")
    log.grow("chat", growth, "a")
    log.append("chat", message("n"))
    log.grow("chat", growth, "b")
    log.settled().result(10)
    state = ChatState.replayed(replay(database, "chat"))
    assert text_of(state.messages["m"]) == "ab"
    assert len(caplog.records) == 2
    assert "disk full" in caplog.records[0].getMessage()


def test_a_chat_that_is_gone_gets_nothing_more(database: Database, log: Log) -> None:
    told: list[Written] = []
    new_chat(log)
    log.append("chat", message("m"), KeepText("m", "x"))
    log.listen(told.extend)
    log.append("chat", DeleteChat())
    log.settled().result(5)
    log.append("chat", message("n"))
    log.append("never", message("n"))
    log.settled().result(5)
    assert [one.is_deleted for one in told] == [True]
    assert database.chat("chat") is None
    assert database.events("chat", 0) == []
    assert not database.has_text("chat", "m")


def test_neighbouring_pieces_are_joined_and_only_they() -> None:
    def text(message_id: str, start: int, words: str) -> str:
        return TextAdded(message_id=message_id, part=0, start=start, text=words).model_dump_json()

    other = PartAdded(message_id="a", index=1, part=TextPart()).model_dump_json()
    joined = coalesce([text("a", 0, "x"), text("a", 1, "y"), text("b", 0, "z"), other, text("a", 2, '"')])
    assert joined == [text("a", 0, "xy"), text("b", 0, "z"), other, text("a", 2, '"')]
    assert coalesce([]) == []


def test_titles() -> None:
    assert title_of("\n  \n Hello there \n more") == "Hello there"
    assert title_of("word " * 40) == ("word " * 16).strip() + "…"
    assert title_of("長" * 100) == "長" * 80 + "…"
    assert title_of("") == ""
