"""What belongs to a chat: its session, its history, and code that is called outside of one."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.apps.content.widgets import Switch
from kaiwa.apps.testing import AppTester
from kaiwa.errors import InvalidOption, NoChat


def test_each_chat_has_its_own_session() -> None:
    app = kw.App()

    @app.on_message
    def answer(message: kw.Message) -> None:
        seen = kw.user_session.get("seen", [])
        kw.user_session.set("seen", [*seen, message.content])
        kw.run_sync(kw.Message(f"{kw.user_session.get('seen')} {kw.user_session.get('id')}").send())

    with AppTester(app) as tester:
        one, two = tester.start(), tester.start()
        one.say("a")
        two.say("b")
        one.say("c")
        assert one.last == f"['a', 'c'] {one.id}"
        assert two.last == f"['b'] {two.id}"


def test_accessors() -> None:
    app = kw.App()
    count = kw.user_session.create_accessor("count", 0, apply_fn=lambda count: count + 1)

    @app.on_message
    async def answer() -> None:
        before = count.get()
        count.apply()
        await kw.Message(f"{before} {count.get()}").send()
        with pytest.raises(InvalidOption, match="says by itself what 'id' is"):
            kw.user_session.set("id", "x")

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("a")
        chat.say("b")
        assert chat.last == "1 2"


def test_the_history_in_the_words_of_a_model() -> None:
    app = kw.App()

    @app.on_message
    async def answer(message: kw.Message) -> None:
        if message.content == "fail":
            raise ValueError("not said by anybody")
        await kw.Message(str(kw.chat_context.to_openai())).send()
        if message.content == "forget":
            kw.chat_context.clear()

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("fail")
        chat.say("hi")
        assert chat.last == str([{"role": "user", "content": "fail"}, {"role": "user", "content": "hi"}])
        chat.say("forget")
        chat.say("new")
        assert chat.last == str([{"role": "user", "content": "new"}])


def test_a_chat_goes_on_after_a_restart_with_what_was_said_and_set(tmp_path: Path) -> None:
    app, resumed = kw.App(), []

    @app.on_chat_start
    async def start() -> None:
        await kw.ChatSettings([Switch("s", "S")]).send()

    @app.on_chat_resume
    async def resume(thread: dict[str, object]) -> None:
        resumed.append((thread["name"], [step["output"] for step in thread["steps"]]))  # type: ignore[attr-defined]

    @app.on_message
    async def answer() -> None:
        texts = [message.content for message in kw.chat_context.get()]
        await kw.Message(f"{texts} {kw.user_session.get('chat_settings')}").send()

    with AppTester(app, folder=tmp_path) as tester:
        chat = tester.start()
        chat.set(s=True)
        chat.say("hi")
    with AppTester(app, folder=tmp_path) as tester:
        again = tester.open(chat.id)
        again.say("there?")
        again.wait(lambda: len(again.texts) == 4)
        assert again.last == "['hi', \"['hi'] {'s': True}\", 'there?'] {'s': True}"
    assert resumed == [("hi", ["hi", "['hi'] {'s': True}"])]


def test_an_earlier_message_can_be_said_differently() -> None:
    app = kw.App()

    @app.on_message
    async def answer(message: kw.Message) -> None:
        with kw.Step("think"):
            pass
        await kw.Message(f"{message.content}, {len(kw.chat_context.get())}").send()

    with AppTester(app) as tester:
        chat = tester.start()
        for text in ("a", "b", "c"):
            chat.say(text)
        second = chat.messages[2]
        chat.send("edit_message", message_id=second.id, text="B")
        chat.wait(lambda: chat.texts == ["a", "a, 1", "B", "B, 3"])
        chat.send("regenerate", message_id=second.id)
        chat.wait(lambda: len(chat.outcomes) == 5)
        assert chat.texts == ["a", "a, 1", "B", "B, 3"]
        assert len(chat.steps) == 2
        with pytest.raises(kw.errors.Refused, match="has no message 'x' of a person"):
            chat.send("regenerate", message_id="x")


def test_outside_of_a_chat_an_error_says_what_to_do() -> None:
    with pytest.raises(NoChat, match="called outside of one") as caught:
        kw.user_session.get("x")
    assert "asyncio.to_thread" in caught.value.hint
    with pytest.raises(NoChat):
        asyncio.run(kw.Message("x").send())


def test_bridges_between_colours() -> None:
    app = kw.App()

    @app.on_message
    async def answer() -> None:
        name = await kw.make_async(lambda: threading.current_thread().name)()
        await kw.sleep(0)
        kw.run_sync(kw.Message("at once").send())
        try:
            kw.run_sync(kw.sleep(1))
        except InvalidOption as error:
            await kw.Message(f"{name.startswith('kaiwa-handler')} {error.hint}").send()

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("?")
        assert chat.texts[1:] == ["at once", "True await it"]
    assert kw.run_sync(asyncio.sleep(0, "alone")) == "alone"
