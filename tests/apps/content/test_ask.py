from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester
from kaiwa.errors import Refused


def asks(question: Any) -> kw.App:
    app = kw.App("Asker")

    @app.on_message
    async def answer() -> None:
        await kw.Message(str(await question())).send()

    return app


def test_text() -> None:
    async def question() -> str:
        answer = await kw.AskUserMessage("Your name?").send()
        assert answer is not None
        return str(answer["output"])

    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Hi")
        assert chat.ask is not None
        assert chat.ask.kind == "text"
        chat.answer("Ann")
        assert chat.texts == ["Hi", "Your name?", "Ann", "Ann"]
        assert chat.ask is None


def test_a_choice_among_buttons() -> None:
    async def question() -> str:
        actions = [kw.Action("yes", {"value": 1}, label="Yes, please"), kw.Action("no", {"value": 0})]
        answer = await kw.AskActionMessage("Sure?", actions).send()
        assert answer is not None
        return f"{answer['name']} {answer['payload']['value']}"

    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Do it")
        assert [action.label for action in chat.state.actions.values()] == ["Yes, please", "no"]
        chat.click("Yes, please")
        assert chat.last == "yes 1"


def test_files(tmp_path: Path) -> None:
    async def question() -> str:
        files = await kw.AskFileMessage("A text?", accept=["text/plain"], max_files=2).send()
        assert files is not None
        return " ".join(f"{file.name}:{file.size}:{Path(file.path).read_text()}" for file in files)

    path = tmp_path / "note.txt"
    path.write_text("read me")
    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Read")
        assert chat.ask is not None
        assert chat.ask.accept == ("text/plain",)
        with pytest.raises(Refused, match="takes 1 to 2 files, not 3"):
            chat.answer(files=[path, path, path])
        chat.answer(files=[path])
        assert chat.last == "note.txt:7:read me"


def test_a_file_that_is_too_large_for_the_question(tmp_path: Path) -> None:
    async def question() -> object:
        return await kw.AskFileMessage("Small?", accept=["*/*"], max_size_mb=0.000001).send()

    path = tmp_path / "note.txt"
    path.write_text("read me")
    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Read")
        with pytest.raises(Refused, match=r"note\.txt has"):
            chat.answer(files=[path])
        chat.stop()


def test_a_custom_element() -> None:
    async def question() -> str:
        element = kw.CustomElement("Form", {"fields": ["name"]})
        answer = await kw.AskElementMessage("Fill in", element).send()
        assert answer is not None
        return f"{answer['name']} {answer['submitted']}"

    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Form")
        assert chat.elements[0].props == {"fields": ["name"]}
        chat.answer(values={"name": "Ann"})
        assert chat.last == "Ann True"


def test_nobody_answers_in_time() -> None:
    async def question() -> str:
        quiet = await kw.AskUserMessage("Anybody?", timeout=0.05).send()
        try:
            await kw.AskUserMessage("Really?", timeout=0.05, raise_on_timeout=True).send()
        except TimeoutError as error:
            return f"{quiet} {error}"
        return "?"

    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Hello?")
        chat.wait_for_run(0)
        chat.wait(lambda: chat.outcomes)
        assert chat.last == "None nobody answered 'Really?' within 0.05 seconds"


def test_a_stop_takes_the_question_back() -> None:
    async def question() -> object:
        return await kw.AskUserMessage("Well?").send()

    with AppTester(asks(question)) as tester:
        chat = tester.start()
        chat.say("Hi")
        chat.stop()
        assert (chat.ask, chat.outcomes) == (None, ["stopped"])
