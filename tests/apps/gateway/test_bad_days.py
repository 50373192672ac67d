"""The bad day: a question across a lost connection, a server that is killed, code that holds everybody up."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import kaiwa as kw
from app_wire import PATIENCE_S, Wire, http, served

COUNTER = """
import asyncio
import kaiwa as kw

@kw.on_message
async def answer(message):
    said = kw.Message()
    for number in range(10_000):
        await said.stream_token(f"{number} ")
        await asyncio.sleep(0.002)
"""


@pytest.fixture
def asking() -> kw.App:
    app = kw.App("Asker")

    @app.on_message
    async def answer(message: kw.Message) -> None:
        name = await kw.AskUserMessage("Your name?", timeout=30).send()
        await kw.Message(f"Hello {name['output'] if name else 'nobody'}").send()

    return app


def test_a_question_is_there_again_after_a_lost_connection_and_answered_by_its_id(
    asking: kw.App, tmp_path: Path
) -> None:
    with served(asking, tmp_path) as port:
        page = Wire(port).hello().new_chat()
        page.say("Hi")
        page.until(lambda: page.state.asks)
        page.cut()
        with Wire(port) as again, Wire(port) as other:
            again.hello().open_chat(page.chat_id)
            other.hello().open_chat(page.chat_id)
            again.until(lambda: again.state.asks)
            (ask,) = again.state.asks.values()
            assert ask.message_id == list(again.state.messages)[-1]
            refused = again.ask("answer", ask_id=ask.id, action_id="a")
            assert "answered with text, not with action_id" in refused["problem"]["message"]
            assert again.ask("answer", ask_id=ask.id, text="Ann")["type"] == "accepted"
            for one in (again, other):
                one.until_idle()
                assert one.texts == ["Hi", "Your name?", "Ann", "Hello Ann"]
            assert other.ask("answer", ask_id=ask.id, text="Bob")["problem"]["code"] == "too_late"


@contextmanager
def process(app_file: Path, port: int, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`kaiwa run` in a process of its own."""
    command = [sys.executable, "-m", "kaiwa.cli.main", "run", str(app_file), "--port", str(port), "--headless"]
    running = subprocess.Popen(
        command, env=os.environ | {"KAIWA_HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        with http(port) as client:
            while True:
                assert time.monotonic() < deadline
                assert running.poll() is None
                try:
                    client.get("/api/health")
                    break
                except OSError:
                    time.sleep(0.02)
                except Exception:  # noqa: BLE001  (whatever a client says of a server that is not there yet)
                    time.sleep(0.02)
        yield running
    finally:
        running.kill()
        running.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_server_that_is_killed_loses_nothing_that_a_page_has_seen(tmp_path: Path) -> None:
    app_file = tmp_path / "counter.py"
    app_file.write_text(COUNTER)
    port = free_port()
    with process(app_file, port, tmp_path) as running:
        page = Wire(port).hello().new_chat()
        page.say("Count")
        page.until(lambda: len(page.of("text_added")) >= 10)
        running.send_signal(signal.SIGKILL)
        page.cut()
    with process(app_file, port, tmp_path), Wire(port) as again:
        again.state, again.events = page.state, page.events
        again.hello().open_chat(page.chat_id, since=page.offset)
        again.until_idle()
        assert again.of("run_finished")[-1]["outcome"] == "lost"
        (answer,) = [message for message in again.state.messages.values() if message.role == "assistant"]
        assert answer.state == "stopped"
        numbers = again.texts[-1].split()
        assert numbers == [str(number) for number in range(len(numbers))], "nothing is missing, and nothing is twice"
        again.say("And on")
        again.until(lambda: again.texts[-1].startswith("0 1"))
        with Wire(port) as fresh:
            fresh.hello().open_chat(page.chat_id)
            fresh.until(lambda: len(fresh.of("run_started")) == 2)
            assert fresh.texts[1] == again.texts[1]


def test_code_that_blocks_holds_up_no_page_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = kw.App("Blocker")

    @app.on_message
    async def answer(message: kw.Message) -> None:
        time.sleep(1.0)
        await kw.Message("still here").send()

    with caplog.at_level(logging.WARNING, "kaiwa.apps"), served(app, tmp_path) as port, Wire(port) as page:
        page.hello().new_chat()
        page.say("Block")
        begun_at = time.monotonic()
        page.until(lambda: any(frame == {"type": "busy", "is_busy": True} for frame in page.frames))
        with Wire(port) as other:
            other.hello()
            assert other.frames[0]["is_busy"]
            other.ask("list_chats", search="block")
            assert len(next(frame for frame in other.frames if frame["type"] == "chat_list")["chats"]) == 1
            other.new_chat()
            other.say("Me too")
            assert time.monotonic() - begun_at < 0.9, "all of this while the app was blocked"
            page.until_idle()
            other.until_idle()
            assert (page.texts[-1], other.texts[-1]) == ("still here", "still here")
            page.until(lambda: any(frame == {"type": "busy", "is_busy": False} for frame in page.frames))
    warning = next(record.getMessage() for record in caplog.records if "has blocked" in record.getMessage())
    line = next(
        number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "sleep(1.0)" in text
    )
    assert warning.startswith(f"{__file__}:{line}, in ")
    assert "asyncio.to_thread" in warning


def test_without_async_the_same_function_holds_nobody_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = kw.App("Patient")

    @app.on_message
    def answer(message: kw.Message) -> None:
        time.sleep(0.5)
        kw.run_sync(kw.Message(f"re {message.content}").send())

    with caplog.at_level(logging.WARNING, "kaiwa.apps"), served(app, tmp_path) as port:
        begun_at = time.monotonic()
        pages = [Wire(port).hello().new_chat() for _ in range(4)]
        for page in pages:
            page.say("x")
        for page in pages:
            page.until_idle()
            assert page.texts[-1] == "re x"
            page.close()
        assert time.monotonic() - begun_at < 1.9, "they took their time beside each other"
    assert not caplog.records


def test_the_page_answers_while_a_model_loads_and_two_browsers_cause_one_load(tmp_path: Path) -> None:
    loads = []

    @kw.cache
    def load_model(name: str) -> str:
        loads.append(name)
        time.sleep(0.6)
        return name

    app = kw.App("Seed")

    @app.on_chat_start
    async def start() -> None:
        import asyncio

        with kw.Step(name="モデルをロード", type="llm"):
            kw.user_session.set("model", await asyncio.to_thread(load_model, "m"))
        await kw.Message("ようこそ").send()

    with served(app, tmp_path) as port, Wire(port) as first, Wire(port) as second, http(port) as client:
        first.hello().new_chat()
        second.hello().new_chat()
        for page in (first, second):
            page.until(lambda page=page: [step.state for step in page.state.steps.values()] == ["in_use"])
        asked_at = time.monotonic()
        assert client.get("/").status_code == 200
        assert time.monotonic() - asked_at < 0.3
        for page in (first, second):
            page.until_idle()
            assert [step.state for step in page.state.steps.values()] == ["used"]
            assert page.texts == ["ようこそ"]
    assert loads == ["m"]
