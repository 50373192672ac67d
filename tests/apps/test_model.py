"""Models of an app: declared at its top, loaded once, shown while they load, and stopped when people stop."""

from __future__ import annotations

import threading
import time

import kaiwa as kw
from kaiwa.apps.definition import as_default
from kaiwa.apps.testing import AppTester
from kaiwa.events import Progress
from kaiwa.runtime.pool.admission import Admission, Load, PooledModel
from small_model import echoes, model, says


def app_with(load: Load, *, preload: bool = False, **options: object) -> kw.App:
    app = kw.App("Echo")
    with as_default(app):
        declared = kw.Model("small", load=load, preload=preload)

    @app.on_message
    async def answer() -> None:
        await kw.reply(declared, **options)  # type: ignore[arg-type]

    return app


def loading(gate: threading.Event, loads: list[str]) -> Load:
    def load(admission: Admission) -> PooledModel:
        loads.append("load")
        admission.admit(0)
        admission.report(Progress("load", 1, 2, "tensors"))
        assert gate.wait(5)
        return model(echoes())

    return load


def test_one_load_for_all_with_a_bar_in_every_chat_that_waits() -> None:
    gate, loads = threading.Event(), list[str]()
    with AppTester(app_with(loading(gate, loads))) as tester:
        names = {"en": "Load small", "fr": "Load small", "ja-JP": "small をロード"}
        chats = [tester.start(language=language) for language in names]
        for number, chat in enumerate(chats):
            chat.say(f"hello {number}", wait=False)
        for chat, name in zip(chats, names.values(), strict=True):
            chat.wait(lambda chat=chat: chat.steps and chat.steps[0].progress)
            (step,) = chat.steps
            assert (step.name, step.state, step.progress.done, step.progress.total) == (name, "in_use", 1, 2)
        gate.set()
        for number, chat in enumerate(chats):
            chat.wait_for_run(0)
            assert chat.last == f"hello {number}"
            assert chat.steps[0].state == "used"
        chats[0].say("again")
        assert len(chats[0].steps) == 1, "what is loaded needs no step"
    assert loads == ["load"]


def test_an_answer_says_what_it_cost() -> None:
    with AppTester(app_with(lambda admission: _admitted(admission))) as tester:
        chat = tester.start()
        last = chat.say("hi")
        assert last.finish_reason == "stop"
        assert last.usage is not None
        assert (last.usage.generated_tokens, last.usage.context_length) == (3, 4096)
        assert last.timings is not None


def _admitted(admission: Admission) -> PooledModel:
    admission.admit(0)
    return model(echoes())


def test_the_history_and_a_system_prompt_reach_the_model() -> None:
    seen: list[str] = []

    def load(admission: Admission) -> PooledModel:
        from small_model import scripted

        def answer(ids: object) -> list[int]:
            seen.append(bytes(token for token in ids if token < 256).decode())  # type: ignore[attr-defined]
            return list(b"ok")

        admission.admit(0)
        return model(scripted(answer))

    with AppTester(app_with(load, system="Be brief.")) as tester:
        chat = tester.start()
        chat.say("one")
        chat.say("two")
    assert seen[-1] == "system\nBe brief.\nuser\none\nassistant\nok\nuser\ntwo\nassistant\n"


def test_a_stop_stops_the_model() -> None:
    def load(admission: Admission) -> PooledModel:
        admission.admit(0)
        return model(says("on and " * 300, delay_s=0.005))

    with AppTester(app_with(load)) as tester:
        chat = tester.start()
        chat.say("go", wait=False)
        chat.wait(lambda: "on and on" in chat.last)
        chat.stop()
        length = len(chat.last)
        assert chat.messages[-1].state == "stopped"
        time.sleep(0.1)
        assert len(chat.last) == length


def test_a_load_that_fails_says_why_and_can_be_tried_again() -> None:
    problems = [kw.errors.UnusableFile("x.gguf", "GGUF", "it is cut short")]

    def load(admission: Admission) -> PooledModel:
        if problems:
            raise problems.pop()
        return _admitted(admission)

    with AppTester(app_with(load)) as tester:
        chat = tester.start()
        assert chat.say("hi").role == "error"
        assert "x.gguf is not a usable GGUF file: it is cut short" in chat.last
        assert chat.steps[0].state == "failed"
        chat.say("again")
        assert chat.last == "again"


def test_a_model_that_is_loaded_before_anybody_comes() -> None:
    gate, loads = threading.Event(), list[str]()
    gate.set()
    with AppTester(app_with(loading(gate, loads), preload=True)) as tester:
        deadline = time.monotonic() + 5
        while not loads and time.monotonic() < deadline:
            time.sleep(0.01)
        chat = tester.start()
        chat.say("hi")
        assert chat.last == "hi"
    assert loads == ["load"]


def test_a_history_that_does_not_fit_is_refused_with_the_numbers() -> None:
    def load(admission: Admission) -> PooledModel:
        admission.admit(0)
        return model(echoes(context_length=64))

    with AppTester(app_with(load)) as tester:
        chat = tester.start()
        assert chat.say("x" * 100).role == "error"
        assert "the context holds 64" in chat.last


def test_a_model_belongs_to_whichever_app_uses_it() -> None:
    loads: list[str] = []
    gate = threading.Event()
    gate.set()
    declared = kw.Model("anywhere", load=loading(gate, loads))
    app = kw.App("Explicit")

    @app.on_message
    async def answer() -> None:
        await kw.reply(declared)

    for number in (1, 2):
        with AppTester(app) as tester:
            for _ in range(2):
                chat = tester.start()
                chat.say("hi")
                assert chat.last == "hi"
        assert len(loads) == number, "each app loads it once, and again after it was closed"


def test_a_model_without_an_app_says_so() -> None:
    import asyncio

    import pytest

    with as_default(kw.App()):
        lonely = kw.Model("small")
    with pytest.raises(kw.errors.NoChat, match="belongs to an app, which is not running"):
        asyncio.run(lonely.load())
