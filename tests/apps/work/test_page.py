"""A page gets every event once and in order, however slowly it reads and however late it hears of them."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaiwa.apps.protocol.events import MessageRemoved
from kaiwa.apps.protocol.frames import Busy
from kaiwa.apps.protocol.records import Chat
from kaiwa.apps.storage.database import Database
from kaiwa.apps.storage.entries import CreateChat
from kaiwa.apps.storage.log import Log, Written
from kaiwa.apps.work import page as page_module
from kaiwa.apps.work.ids import new_id
from kaiwa.apps.work.page import MAX_WAITING_FRAMES, Identity, Page


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database.in_file(tmp_path / "chats.sqlite3")
    yield database
    database.close()


@given(st.lists(st.sampled_from(["write", "write", "hear", "take"]), max_size=40), st.integers(0, 5), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_event_once_and_in_order(database: Database, actions: list[str], since: int, is_slow: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if is_slow:
            patch.setattr(page_module, "MAX_INBOX_CHARS", 150)  # two events, and no more
            patch.setattr(page_module, "EVENTS_PER_PAGE", 3)
            read = database.events
            patch.setattr(database, "events", lambda chat_id, since: read(chat_id, since, limit=3))
        asyncio.run(follow(database, actions, since))


async def follow(database: Database, actions: list[str], since: int) -> None:
    chat_id, log = new_id(), Log(database)
    unheard: deque[Written] = deque()
    log.listen(unheard.extend)
    log.append(chat_id, CreateChat(Chat(id=chat_id, title="", created_at=0, updated_at=0), "local"))
    num_events = since
    for number in range(since):
        log.append(chat_id, MessageRemoved(message_id=str(number)))
    log.settled().result(5)
    unheard.clear()
    page = Page(Identity("local"), database, wake=lambda: None)
    page.follow(chat_id, since)
    got: list[str] = []

    async def take() -> bool:
        frames = [json.loads(text) for text in await page.take()]
        for frame in frames:
            got.extend(event["message_id"] for event in frame["events"])
            assert frame["offset"] == since + len(got)
        return bool(frames)

    def hear() -> None:
        if unheard:
            one = unheard.popleft()
            page.feeds[chat_id].offer(one.since, one.bodies)

    for action in actions:
        if action == "write":
            log.append(chat_id, MessageRemoved(message_id=str(num_events)))
            num_events += 1
            log.settled().result(5)
        elif action == "hear":
            hear()
        else:
            await take()
    while unheard:
        hear()
    while await take():
        pass
    log.close()
    assert got == [str(number) for number in range(since, num_events)]


def test_a_page_that_takes_nothing_is_overrun(database: Database) -> None:
    woken = []
    page = Page(Identity("local"), database, wake=lambda: woken.append(True))
    for _ in range(MAX_WAITING_FRAMES):
        page.send(Busy(is_busy=True))
    assert not page.is_overrun
    page.send(Busy(is_busy=False))
    assert page.is_overrun
    assert len(woken) == MAX_WAITING_FRAMES + 1
