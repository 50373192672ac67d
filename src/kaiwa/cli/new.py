"""`kaiwa new`: a folder with an app to begin with, and its test."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from kaiwa.errors import InvalidOption

SUMMARY = "Begin a chat app of your own."

_APP = '''"""A chat app. `kaiwa run -w app.py` serves it, and reads it again whenever you save it."""

import kaiwa as kw

model = kw.Model("smollm2:135m")


@kw.set_starters
def starters():
    return [
        kw.Starter("Explain gravity", "Can you explain gravity to me?"),
        kw.Starter("A haiku", "Write a haiku about conversation."),
    ]


@kw.on_message
async def answer(message):
    await kw.reply(model, system="You are a helpful assistant.")
'''

_TEST = '''"""`pytest` talks to the app as people do: no browser, and nothing that only looks like it."""

from pathlib import Path

from kaiwa.apps.testing import AppTester


def test_it_answers():
    with AppTester(Path(__file__).with_name("app.py")) as tester:
        chat = tester.start()
        answer = chat.say("Say hello.")
        assert answer.role == "assistant"
        assert chat.last
'''

FILES = {"app.py": _APP, "test_app.py": _TEST}


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.usage = "kaiwa new NAME"
    parser.add_argument("name", metavar="NAME", help="the folder to make")


def run(arguments: argparse.Namespace) -> int:
    """Make the folder. What is there already is never touched."""
    folder = Path(arguments.name)
    if not re.fullmatch(r"[\w.\- ]+", folder.name) or folder.name in (".", ".."):
        raise InvalidOption(f"{arguments.name!r} is no name for a folder", hint="use letters, digits, - and _")
    if folder.exists():
        raise InvalidOption(f"{folder} is there already", hint="choose another name, or remove it first")
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder} has an app. Next:\n  kaiwa run -w {folder / 'app.py'}")
    return 0
