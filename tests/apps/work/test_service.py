from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester
from kaiwa.apps.work import service as service_module
from kaiwa.apps.work.service import Service
from kaiwa.apps.work.sessions import MAX_IDLE_S, MAX_UNUSED_S
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


def test_what_waits_when_the_server_ends_is_answered_once_somebody_looks(tmp_path: Path) -> None:
    app = kw.App()

    @app.on_message
    async def answer(message: kw.Message) -> None:
        if message.content == "first":
            await asyncio.sleep(60)
        await kw.Message(f"re {message.content}").send()

    with AppTester(app, folder=tmp_path) as tester:
        chat = tester.start()
        chat.say("first", wait=False)
        chat.wait(lambda: chat.state.run_ids)
        chat.say("second", wait=False)
        chat.say("third", wait=False)
        chat.leave()
    with AppTester(app, folder=tmp_path) as tester:
        again = tester.open(chat.id)
        again.wait(lambda: again.last == "re third" and not again.state.run_ids)
        assert again.texts == ["first", "second", "re second", "third", "re third"]
        again.say("fourth")
        assert again.texts[-2:] == ["fourth", "re fourth"]


def test_a_message_that_is_said_first_after_an_end_is_answered_once(tmp_path: Path) -> None:
    app = kw.App()
    app.on_message(lambda message: kw.run_sync(kw.Message(f"re {message.content}").send()))
    with AppTester(app, folder=tmp_path) as tester:
        chat = tester.start()
        chat.say("one")
    with AppTester(app, folder=tmp_path) as tester:
        again = tester.open(chat.id)
        for text in ("two", "three", "four"):
            again.say(text, wait=False)
        again.wait(lambda: again.last == "re four" and not again.state.run_ids)
        assert again.texts == ["one", "re one", "two", "re two", "three", "re three", "four", "re four"]


def test_what_is_said_ahead_stands_behind_the_answer_before_it() -> None:
    app, heard = kw.App(), []

    @app.on_message
    async def answer(message: kw.Message) -> None:
        heard.append([one["content"] for one in kw.chat_context.to_openai()])
        with kw.Step("work"):
            await asyncio.sleep(0.1)
        await kw.Message(f"re {message.content}").send()

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("first", wait=False)
        chat.wait(lambda: chat.state.run_ids)
        second = chat.say("second", wait=False)
        chat.wait(lambda: chat.last == "re second" and not chat.state.run_ids)
        assert chat.texts == ["first", "re first", "second", "re second"]
        chat.send("edit_message", message_id=second.id, text="other")
        chat.wait(lambda: chat.last == "re other" and not chat.state.run_ids)
        assert chat.texts == ["first", "re first", "other", "re other"]
        assert [step.name for step in chat.steps] == ["work", "work"], "the first answer keeps its step"
    assert heard[-1] == ["first", "re first", "other"]


def test_a_chat_that_begins_with_a_file_is_called_like_it(tmp_path: Path) -> None:
    file = tmp_path / "統計.csv"
    file.write_text("a,b\n")
    app = kw.App()
    app.on_message(lambda message: None)
    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("", files=[file])
        tester.service.log.settled().result(10)
        found = tester.service.database.chat(chat.id)
        assert found is not None
        assert found[0].title == "統計.csv"
        chat.say("what is this?")
        assert tester.service.database.chat(chat.id)[0].title == "統計.csv"  # type: ignore[index]
