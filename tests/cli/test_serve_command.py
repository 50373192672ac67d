"""`kaiwa serve` as people start it: a process with a real model, signals, and mistakes."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from openai import APIError, OpenAI

from kaiwa.cli.main import main
from kaiwa.cli.serve import _bytes, _seconds, configure, named
from pages import ROOT, check_table, markdown_table

MODEL = "smollm2:135m"
HELLO = [{"role": "user", "content": "Name three colours."}]


@contextmanager
def serving(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that has said where it is."""
    command = [sys.executable, "-m", "kaiwa.cli.main", "serve", *flags, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().split(" at ")[1].split("/v1")[0]
        finally:
            process.kill()


def client_of(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_a_model_answers_other_programs(model_path: Path) -> None:
    with serving() as (process, url):
        assert httpx2.get(f"{url}/health").json() == {"status": "ok"}
        with client_of(url) as client:
            answer = client.chat.completions.create(model=MODEL, messages=HELLO, temperature=0, max_tokens=20)
            assert answer.choices[0].message.content
            [card] = client.models.list().data
            assert (card.id, card.state, card.context_length) == (MODEL, "ready", 8192)
            stream = client.chat.completions.create(
                model=MODEL, messages=HELLO, temperature=0, max_tokens=20, stream=True
            )
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
        assert "".join(pieces) == answer.choices[0].message.content
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        log = process.stderr.read()
    assert log.count("route=/v1/chat/completions status=200") == 2
    assert "colours" not in log


def test_a_signal_lets_answers_finish_and_a_second_one_does_not(model_path: Path) -> None:
    with serving() as (process, url), client_of(url) as client:
        options = {"model": MODEL, "messages": HELLO, "stream": True, "max_tokens": 4000, "logit_bias": {"2": -100}}
        stream = client.chat.completions.create(**options)
        next(iter(stream))
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        stream.close()


def test_an_engine_that_is_killed_fails_what_it_answers_and_comes_back(model_path: Path) -> None:
    with serving() as (process, url), client_of(url) as client:
        stream = client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, max_tokens=4000, logit_bias={"2": -100}
        )
        next(iter(stream))
        [engine] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(engine), signal.SIGKILL)
        with pytest.raises(APIError, match="was killed by SIGKILL in the middle of an answer"):
            list(stream)
        assert httpx2.get(f"{url}/health").status_code == 200
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=5)
        assert answer.choices[0].message.content


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--host", "0.0.0.0"), "can be reached from other machines, and there is no key"),
        (("--host", "192.0.2.1", "--api-key", "long-enough"), "cannot listen on 192.0.2.1"),
        (("--preload", "other"), "--preload names 'other', which is not served"),
        (("a=smollm2:135m", "a=smollm2:135m"), "two models are called 'a'"),
        (("smollm2:135",), "there is no model 'smollm2:135', and no file or folder of that name"),
        (("small=nowhere.gguf",), "there is no file or folder nowhere.gguf"),
        (("--memory", "much"), "'much' is not a size"),
        (("--keep-alive", "soon"), "'soon' is not a time"),
        (("--allow-origin", "*"), "the origin '*' is impossible"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], error: str) -> None:
    assert main(["serve", *arguments]) == 2
    assert error in capsys.readouterr().err


def test_a_port_in_use_is_told_and_nothing_else(capsys: pytest.CaptureFixture[str], model_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"error: the server cannot listen on 127.0.0.1, port {port}: Address already in use"
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"]


def test_keys_come_from_the_environment_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAIWA_API_KEY", "long-enough, short")
    assert main(["serve"]) == 2
    assert "an API key of 5 characters" in capsys.readouterr().err


def test_names_of_models(tmp_path: Path) -> None:
    file = tmp_path / "a=b.gguf"
    file.touch()
    assert named([]) == {MODEL: MODEL}
    assert named(["gpt=smollm2:135m", str(file)]) == {"gpt": MODEL, "a=b.gguf": str(file)}


def test_every_flag_is_documented(rewrite: bool) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    configure(parser)
    rows = [
        (f"`{' '.join([*action.option_strings, action.metavar or ''][:2]).rstrip()}`", action.help % vars(action))
        for action in parser._actions
    ]
    check_table(ROOT / "docs" / "server.md", "flags", markdown_table(("flag", "what it does"), rows), rewrite=rewrite)


def test_sizes_and_times() -> None:
    assert [_bytes(text) for text in ("1000", "2k", "1.5G", "12GiB", "3 mb")] == [
        1000, 2048, 3 * 2**29, 12 * 2**30, 3 * 2**20
    ]  # fmt: skip
    assert [_seconds(text) for text in ("90", "90s", "10m", "2h")] == [90, 90, 600, 7200]
