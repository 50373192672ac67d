"""What an app says, as a page shows it."""

from __future__ import annotations

import asyncio

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester
from kaiwa.errors import InvalidOption


def answers(hook: object) -> kw.App:
    app = kw.App("Parrot")
    app.on_message(hook)  # type: ignore[arg-type]
    return app


def test_a_message_at_once() -> None:
    async def answer(message: kw.Message) -> None:
        await kw.Message(f"{message.content}!").send()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        last = chat.say("Polly")
        assert chat.texts == ["Polly", "Polly!"]
        assert (last.author, last.state, last.role) == ("Parrot", "done", "assistant")


def test_tokens_become_few_events_and_the_whole_text() -> None:
    async def answer(message: kw.Message) -> None:
        said = kw.Message()
        for number in range(2000):
            await said.stream_token(f"{number} 😀 ")
        await said.send()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        chat.say("Count")
        assert chat.last == "".join(f"{number} 😀 " for number in range(2000))
        assert chat.messages[-1].state == "done"
        assert chat.offset < 40, "tokens are gathered, not sent one by one"


def test_a_message_can_change_and_go() -> None:
    async def answer(message: kw.Message) -> None:
        first = await kw.Message("one moment").send()
        second = await kw.Message("unnecessary").send()
        first.content = "there"
        await first.update()
        await second.remove()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        chat.say("Where?")
        assert chat.texts == ["Where?", "there"]


def test_tokens_after_a_message_was_sent() -> None:
    async def answer(message: kw.Message) -> None:
        said = await kw.Message("a").send()
        await said.stream_token("b")
        await said.update()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        chat.say("Go on")
        assert chat.last == "ab"


def test_a_sequence_takes_the_place_of_the_text() -> None:
    async def answer(message: kw.Message) -> None:
        said = kw.Message()
        await said.stream_token("wrong")
        await said.stream_token("right", is_sequence=True)
        await said.stream_token("ly")
        await said.send()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        chat.say("?")
        assert chat.last == "rightly"


def test_a_dictionary_is_shown_as_json() -> None:
    async def answer(message: kw.Message) -> None:
        await kw.Message({"ja": "会話"}).send()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        last = chat.say("?")
        assert (chat.last, last.language) == ('{\n  "ja": "会話"\n}', "json")


def test_what_still_streams_ends_with_its_run() -> None:
    async def answer(message: kw.Message) -> None:
        await kw.Message().stream_token("and then")

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        assert chat.say("?").state == "done"


def test_stop_ends_the_run_and_says_so() -> None:
    async def answer(message: kw.Message) -> None:
        said = kw.Message()
        while True:
            await said.stream_token("on and ")
            await asyncio.sleep(0.001)

    app = answers(answer)
    stopped = []
    app.on_stop(lambda: stopped.append(True))
    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("Go", wait=False)
        chat.wait(lambda: "on and" in chat.last)
        chat.stop()
        assert chat.outcomes == ["stopped"]
        assert chat.messages[-1].state == "stopped"
        tester.service.loop.submit(asyncio.sleep(0)).result()
        assert stopped == [True]


def test_stop_ends_a_function_in_a_thread_at_its_next_word() -> None:
    import threading

    ended = threading.Event()

    def answer(message: kw.Message) -> None:
        try:
            while True:
                kw.run_sync(kw.Message("still here").send())
        finally:
            ended.set()

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        chat.say("Go", wait=False)
        chat.wait(lambda: len(chat.messages) > 3)
        chat.stop()
        assert ended.wait(5)


def test_an_error_is_shown_and_the_chat_goes_on() -> None:
    async def answer(message: kw.Message) -> None:
        raise ValueError("no idea")

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        last = chat.say("?")
        assert (chat.last, last.role) == ("ValueError: no idea", "error")
        chat.say("again")
        assert chat.outcomes == ["failed", "failed"]


def test_messages_wait_for_the_run_before_them_in_the_open() -> None:
    import threading

    go_on = threading.Event()

    def answer(message: kw.Message) -> None:
        go_on.wait(5)
        kw.run_sync(kw.Message(f"re: {message.content}").send())

    with AppTester(answers(answer)) as tester:
        chat = tester.start()
        for text in ("a", "b", "c"):
            chat.say(text, wait=False)
        chat.wait(lambda: [message.state for message in chat.messages] == ["done", "queued", "queued"])
        chat.send("withdraw_message", message_id=chat.messages[1].id)
        go_on.set()
        chat.wait(lambda: chat.last == "re: c")
        assert chat.texts == ["a", "re: a", "c", "re: c"]


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidOption, match="no message of type 'asistant_message'"):
        kw.Message("x", type="asistant_message")  # type: ignore[arg-type]
