from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kaiwa.apps.app_file import load_app
from kaiwa.apps.protocol.frames import Reloaded
from kaiwa.apps.testing import AppTester
from kaiwa.apps.work.reloading import Watcher
from kaiwa.errors import InvalidApp

GOOD = """
import kaiwa as kw
from words import GREETING

@kw.on_message
async def answer(message):
    kw.user_session.set("count", kw.user_session.get("count", 0) + 1)
    await kw.Message(f"{GREETING} {kw.user_session.get('count')}").send()
"""


@pytest.fixture
def app_file(tmp_path: Path) -> Path:
    (tmp_path / "words.py").write_text("GREETING = 'hello'")
    path = tmp_path / "my_app.py"
    path.write_text(GOOD)
    return path


def test_a_file_becomes_an_app_named_after_it(app_file: Path) -> None:
    app = load_app(app_file)
    assert app.name == "My app"
    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("x")
        assert chat.last == "hello 1"


def test_an_explicit_app_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "explicit.py"
    path.write_text("import kaiwa as kw\napp = kw.App('Parrot')\napp.on_message(lambda: None)\nsame = app\n")
    assert load_app(path).name == "Parrot"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import kaiwa as kw\n\n1 / 0\n", r"broken\.py:3: ZeroDivisionError: division by zero"),
        ("def f(:\n", r"broken\.py:1: SyntaxError: invalid syntax"),
        ("import kaiwa\n", "registers no hooks"),
        ("import nothing_at_all\n", r"broken\.py:1: ModuleNotFoundError"),
        ("import kaiwa as kw\n@kw.on_message\ndef f(a, b): ...\n", r"broken\.py:2: InvalidHook: on_message calls"),
        ("import sys\nsys.exit(3)\n", r"broken\.py:2: SystemExit: 3"),
        (
            "import kaiwa as kw\na, b = kw.App('A'), kw.App('B')\nfor x in (a, b): x.on_message(lambda: None)\n",
            "makes several apps: 'A', 'B'",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, source: str, words: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(source)
    with pytest.raises(InvalidApp, match=words):
        load_app(path)


def test_a_file_that_is_not_there_offers_the_nearest(app_file: Path) -> None:
    with pytest.raises(InvalidApp) as caught:
        load_app(app_file.with_name("my_ap.py"))
    assert caught.value.hint == "did you mean 'my_app.py'?"


def test_code_is_read_again_and_the_chat_goes_on(app_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with AppTester(load_app(app_file)) as tester, ExitStack() as stack:
        stack.enter_context(closing(Watcher(app_file, lambda: load_app(app_file), tester.service)))
        chat = tester.start()
        chat.say("x")

        def reloaded(count: int) -> list[Reloaded]:
            found = [frame for frame in chat.frames if isinstance(frame, Reloaded)]
            return found if len(found) >= count else []

        (app_file.parent / "words.py").write_text("GREETING = 'good morning'")
        chat.wait(lambda: reloaded(1))
        chat.say("x")
        assert chat.last == "good morning 2", "new words, and the session is still there"
        time.sleep(0.01)
        app_file.write_text("this is no Python")
        chat.wait(lambda: reloaded(2))
        problem = reloaded(2)[-1].problem
        assert problem is not None
        assert "SyntaxError" in problem.message
        chat.say("x")
        assert chat.last == "good morning 3", "the app stays as it was"
    assert "the app stays as it was" in caplog.text
