"""Pages that come, lose their connection, come back, and look at the same chat together."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import kaiwa as kw
from app_wire import Wire, http, served


def counter(num_tokens: int, pause_s: float = 0.0) -> kw.App:
    app = kw.App("Counter")

    @app.on_message
    async def answer(message: kw.Message) -> None:
        said = kw.Message()
        for number in range(num_tokens):
            await said.stream_token(f"{number} ")
            if pause_s:
                await asyncio.sleep(pause_s)
        await said.send()

    return app


def counted(num_tokens: int) -> str:
    return "".join(f"{number} " for number in range(num_tokens))


def test_an_answer_arrives_whole_in_few_frames(tmp_path: Path) -> None:
    with served(counter(3000), tmp_path) as port, Wire(port) as page:
        page.hello().new_chat()
        page.say("Count")
        page.until_idle()
        assert page.texts == ["Count", counted(3000)]
        assert len([frame for frame in page.frames if frame["type"] == "events"]) < 40


def test_a_page_that_comes_back_gets_what_it_missed_and_nothing_twice(tmp_path: Path) -> None:
    with served(counter(300, 0.002), tmp_path) as port:
        page = Wire(port).hello().new_chat()
        page.say("Count")
        page.until(lambda: len(page.of("text_added")) >= 3)
        page.cut()
        time.sleep(0.2)
        begun_at = time.monotonic()
        with Wire(port) as again:
            again.state, again.events = page.state, page.events
            again.hello().open_chat(page.chat_id, since=page.offset)
            again.until(lambda: any(frame["type"] == "events" for frame in again.frames))
            assert time.monotonic() - begun_at < 2
            again.until_idle()
            assert again.texts == ["Count", counted(300)]


def test_a_chat_goes_on_while_nobody_looks(tmp_path: Path) -> None:
    with served(counter(100, 0.002), tmp_path) as port:
        page = Wire(port).hello().new_chat()
        page.say("Count")
        page.cut()
        time.sleep(0.6)
        with Wire(port) as later:
            later.hello().open_chat(page.chat_id)
            later.until_idle()
            assert later.texts == ["Count", counted(100)]


def test_a_second_tab_follows_live(tmp_path: Path) -> None:
    with served(counter(200, 0.001), tmp_path) as port, Wire(port) as first, Wire(port) as second:
        first.hello().new_chat()
        second.hello().open_chat(first.chat_id)
        first.say("Count")
        for page in (first, second):
            page.until_idle()
            assert page.texts == ["Count", counted(200)]
        assert first.offset == second.offset


def test_text_says_where_it_begins(tmp_path: Path) -> None:
    app = kw.App("Smile")

    @app.on_message
    async def answer(message: kw.Message) -> None:
        said = kw.Message("😀")
        await said.send()
        await said.stream_token("é")
        await said.update()

    with served(app, tmp_path) as port, Wire(port) as page:
        page.hello().new_chat()
        page.say("?")
        page.until_idle()
        assert [event["start"] for event in page.of("text_added")] == [2], "in UTF-16 units, as a browser counts"


def test_a_command_that_is_sent_twice_happens_once(tmp_path: Path) -> None:
    with served(counter(3), tmp_path) as port, Wire(port) as page:
        page.hello().new_chat()
        for _ in range(3):
            page.say("Count", message_id="the-same")
        page.ask("new_chat")
        page.until_idle()
        assert len({event["run_id"] for event in page.of("run_started")}) == 1
    with served(counter(3), tmp_path) as port, Wire(port) as page:
        page.hello().open_chat(page.ask("list_chats") and page.frames[-2]["chats"][0]["id"])
        page.say("Count", message_id="the-same")
        page.ask("list_chats")
        assert len(page.of("run_started")) == 1, "not after the server has started again, either"


def test_nonsense_is_refused_in_words_and_the_connection_stays(tmp_path: Path) -> None:
    with served(counter(3), tmp_path) as port, Wire(port) as page:
        page.hello()
        page._socket.send("nonsense")
        page._socket.send(json.dumps({"type": "say", "id": "x"}))
        page._socket.send(json.dumps({"type": "shout", "id": "y"}))
        page.until(lambda: len([frame for frame in page.frames if frame["type"] == "rejected"]) == 3)
        page.new_chat()
        assert page.ask("say", message_id="m", text="   ")["problem"]["message"] == "the message is empty"
        assert page.ask("open_chat", chat_id="somebody-elses")["problem"]["code"] == "not_found"


def test_a_page_of_another_version_is_told(tmp_path: Path) -> None:
    with served(counter(3), tmp_path) as port, Wire(port) as page:
        assert page.ask("hello", version=99)["problem"]["code"] == "version"


def test_a_message_of_two_megabytes(tmp_path: Path) -> None:
    app = kw.App("Ruler")

    @app.on_message
    async def answer(message: kw.Message) -> None:
        await kw.Message(f"{len(message.content):,}").send()

    with served(app, tmp_path) as port, Wire(port) as page:
        page.hello().new_chat()
        page.say("長" * 2_000_000)
        page.until_idle()
        assert page.texts[-1] == "2,000,000"
        refused = page.ask("say", message_id="m", text="x" * 4_000_001)
        assert refused["problem"]["code"] == "too_large"


def test_without_a_websocket_the_same_by_server_sent_events(tmp_path: Path) -> None:
    with served(counter(50), tmp_path) as port, http(port) as client:
        frames = []
        with client.stream("GET", "/api/events", params={"connection": "c1"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": connected"
            for command in (
                {"type": "hello", "id": "1", "version": 1},
                {"type": "new_chat", "id": "2", "chat_id": "chat"},
                {"type": "say", "id": "3", "chat_id": "chat", "message_id": "m", "text": "Count"},
            ):
                answer = client.post("/api/commands", params={"connection": "c1"}, json=command)
                assert answer.status_code == 202
            for line in lines:
                if line.startswith("data: "):
                    frames.append(json.loads(line.removeprefix("data: ")))
                if '"run_finished"' in line:
                    break
        events = [event for frame in frames if frame["type"] == "events" for event in frame["events"]]
        assert "".join(event["text"] for event in events if event["type"] == "text_added") == counted(50)
        gone = client.post("/api/commands", params={"connection": "nobody"}, json={"type": "hello"})
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


def test_the_list_of_chats(tmp_path: Path) -> None:
    with served(counter(3), tmp_path) as port, Wire(port) as page:
        page.hello()
        for text in ("Apples and pears", "Plums", "苹果 100%"):
            page.new_chat()
            page.say(text)
            page.until(lambda: page.state.messages and not page.state.run_ids and page.of("run_finished"))
            page.events.clear()
        page.new_chat()

        def titles(**fields: str) -> list[str]:
            page.ask("list_chats", **fields)
            found = [frame for frame in page.frames if frame["type"] == "chat_list"][-1]
            return [chat["title"] for chat in found["chats"]]

        assert titles() == ["苹果 100%", "Plums", "Apples and pears"], "one in which nobody spoke is not listed"
        assert titles(search="apples") == ["Apples and pears"]
        assert titles(search="0%") == ["苹果 100%"]
        assert titles(search="_lums") == []
        assert titles(search="2 ") == ["苹果 100%", "Plums", "Apples and pears"], "answers are searched, too"
        page.until(lambda: True)
        page.open_chat([f for f in page.frames if f["type"] == "chat_list"][-1]["chats"][1]["id"])
        page.ask("rename_chat", title="Prunes")
        assert titles(search="prunes") == ["Prunes"]
        page.ask("delete_chat")
        assert titles() == ["苹果 100%", "Apples and pears"]
        page.until(lambda: any(frame["type"] == "chat_removed" for frame in page.frames))
