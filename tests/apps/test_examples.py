"""The examples, used as a person would."""

from __future__ import annotations

import json
from pathlib import Path

from kaiwa.apps.testing import AppTester
from pages import ROOT

FOLDER = ROOT / "examples" / "apps"


def test_dinner() -> None:
    with AppTester(FOLDER / "dinner.py") as tester:
        chat = tester.start()
        chat.say("hello")
        chat.answer("Ann")
        chat.wait(lambda: chat.ask and chat.ask.kind == "action")
        chat.click("Curry")
        assert chat.last == "Curry for Ann!"
        assert chat.steps[0].output == "curry takes 40 minutes"


def test_reader(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("to be or not to be")
    with AppTester(FOLDER / "reader.py") as tester:
        chat = tester.start()
        chat.say("read this", files=[path])
        assert chat.last == "The most frequent words of words.txt:"
        assert json.loads(chat.steps[0].output)["to"] == 2
        assert chat.elements[-1].kind == "dataframe"
        chat.say("and now?")
        assert chat.last == "Send me a text file."
