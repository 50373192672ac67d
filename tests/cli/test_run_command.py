"""`kaiwa run` and `kaiwa new`, as a person types them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app_wire import Wire
from kaiwa.cli.main import main

PARROT = """
import kaiwa as kw

@kw.on_message
async def answer(message):
    await kw.Message(message.content).send()
"""


@pytest.fixture
def parrot(tmp_path: Path) -> Path:
    path = tmp_path / "parrot.py"
    path.write_text(PARROT)
    return path


def test_an_app_is_served_until_it_is_interrupted(parrot: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kaiwa.cli.main", "run", str(parrot), "--port", "0", "--headless"]
    with subprocess.Popen(
        command, env=os.environ | {"KAIWA_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        found = re.fullmatch(r"Parrot is at http://localhost:(\d+)/\n", line)
        assert found, line
        with Wire(int(found[1])) as page:
            page.hello().new_chat()
            page.say("Polly")
            page.until_idle()
            assert page.texts == ["Polly", "Polly"]
        running.send_signal(signal.SIGINT)
        assert running.wait(10) in (130, -signal.SIGINT)
        assert "Traceback" not in running.stderr.read()
    assert list((tmp_path / "apps").glob("parrot-*/chats.sqlite3"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], "error: there is no file"),
        (["-w"], "error: -w watches an app's file, and none is given"),
        (["{app}", "--port", "70000"], "is not a port"),
        (["{app}", "--host", "0.0.0.0"], "everybody on the network could use this app"),
        (["{app}", "--hst", "x"], "unrecognized arguments: --hst"),
    ],
)
def test_mistakes_are_told(
    parrot: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tests_home: Path
) -> None:
    assert main(["run", *(argument.format(app=parrot) for argument in arguments)]) != 0
    assert words in capsys.readouterr().err


def test_a_port_that_is_taken_offers_the_next(parrot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["run", str(parrot), "--headless", "--port", str(port)]) == 1
    told = capsys.readouterr().err
    assert f"the address 127.0.0.1:{port} cannot be used" in told
    assert f"--port {port + 1}" in told


def test_new_makes_an_app_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kaiwa.apps.app_file import load_app

    folder = tmp_path / "my-app"
    assert main(["new", str(folder)]) == 0
    assert f"kaiwa run -w {folder / 'app.py'}" in capsys.readouterr().out
    app = load_app(folder / "app.py")
    assert app.hooks.has("on_message")
    assert [model.name for model in app.models] == ["smollm2:135m"]
    compile((folder / "test_app.py").read_text(), "test_app.py", "exec")


@pytest.mark.parametrize("name", ["", "a/b?c", ".."])
def test_new_refuses_what_is_no_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name]) == 2
    assert "is no name for a folder" in capsys.readouterr().err


def test_new_touches_nothing_that_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
