from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.apps import service as service_module
from kaiwa.apps.service import Service
from kaiwa.apps.sessions import MAX_IDLE_S, MAX_UNUSED_S
from kaiwa.apps.testing import AppTester
from kaiwa.errors import StorageFailed


def listener(heard: list[str]) -> kw.App:
    app = kw.App()
    app.on_message(lambda: heard.append("message"))
    app.on_chat_end(lambda: heard.append("end"))
    return app


def sweep(tester: AppTester, later_s: float) -> None:
    sessions = tester.service.chats.sessions
    tester.service.loop.submit(sessions.sweep(time.monotonic() + later_s)).result(5)
    tester.service.log.settled().result(5)


def test_a_chat_that_nobody_looks_at_for_long_ends_and_is_kept() -> None:
    heard: list[str] = []
    with AppTester(listener(heard)) as tester:
        chat = tester.start()
        chat.say("hi")
        sweep(tester, 2 * MAX_IDLE_S)
        assert heard == ["message"], "somebody looks at it"
        chat.leave()
        sweep(tester, 2 * MAX_IDLE_S + MAX_UNUSED_S + 1)
        assert heard == ["message"]
        sweep(tester, 4 * MAX_IDLE_S)
        assert heard == ["message", "end"]
        assert tester.service.chats.sessions.find(chat.id) is None
        assert tester.service.database.chat(chat.id) is not None


def test_a_chat_in_which_nobody_said_anything_goes() -> None:
    heard: list[str] = []
    with AppTester(listener(heard)) as tester:
        chat = tester.start()
        chat.leave()
        sweep(tester, MAX_UNUSED_S + 1)
        assert heard == ["end"]
        assert tester.service.database.chat(chat.id) is None


def test_one_process_at_a_time_serves_an_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "MAX_WAIT_S", 0.0)
    first = Service(listener([]), tmp_path)
    with pytest.raises(StorageFailed, match="the app is being served already"):
        Service(listener([]), tmp_path)
    first.close()
    Service(listener([]), tmp_path).close()


def test_the_end_of_a_service_stops_what_runs(tmp_path: Path) -> None:
    app, ended = kw.App(), []

    @app.on_message
    async def answer() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    with AppTester(app, folder=tmp_path) as tester:
        chat = tester.start()
        chat.say("hi", wait=False)
        chat.wait(lambda: chat.state.run_ids)
    assert ended == [True]
    with AppTester(app, folder=tmp_path) as tester:
        again = tester.open(chat.id)
        again.wait(lambda: again.outcomes == ["stopped"])
