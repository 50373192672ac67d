"""The `kaiwa` command: what it says of itself, and how it speaks of mistakes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kaiwa
from kaiwa.cli.main import command_names, main
from kaiwa.sampling import OPTIONS, Sampling


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main(arguments)
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",), ("help",)])
def test_help_lists_every_command(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, err = told(capsys, *arguments)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) < 20
    for name in command_names():
        assert f"kaiwa {name} " in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--version") == (0, f"kaiwa {kaiwa.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (("chta",), "there is no command 'chta'", "did you mean 'chat'?"),
        (("--verison",), "there is no flag '--verison'", "did you mean '--version'?"),
        (("chat", "--sytem", "x"), "unrecognized arguments: --sytem", "did you mean '--system'?"),
        (("chat", "--threads", "0"), "argument --threads: '0' is not a whole number above 0", "kaiwa chat -h"),
        (("chat", "temprature=1"), "there is no option 'temprature'", "did you mean 'temperature'?"),
        (("chat", "top_p=7"), "top_p=7 is impossible", "top_p must be a number above 0 and up to 1"),
        (("chat", "seed=1", "seed=2"), "seed is given twice", "leave one of the two seed=… out"),
        (("chat", "model", "gravity"), "'gravity' is not an option", "write options as name=value"),
        (("bench", "one", "two"), "unrecognized arguments: two", "kaiwa bench -h"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], error: str, hint: str
) -> None:
    code, out, err = told(capsys, *arguments)
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first == f"error: {error}"
    assert second.startswith(f"hint: {hint}")


def test_chat_help_explains_every_option_of_sampling(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as exit_:
        main(["chat", "-h"])
    assert exit_.value.code == 0
    text, defaults = capsys.readouterr().out, Sampling().to_dict()
    for option in OPTIONS:
        default = "" if option.kind in ("strings", "biases") else defaults[option.name]
        assert f"{option.name}={default} {option.help} ({option.range})" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_a_saved_chat_that_is_missing_is_told_before_the_model_loads(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "chat", "no-such-model", "--load", "no-such-chat")
    assert code == 1
    assert err.startswith("error: there is no saved chat 'no-such-chat'")


def test_help_needs_neither_web_nor_terminal_library() -> None:
    program = (
        "import sys; from kaiwa.cli.main import main; main([]); "
        "print(sorted({'rich', 'prompt_toolkit', 'jinja2', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = "import time; time.sleep(0.5); from kaiwa.cli.main import main; raise SystemExit(main([]))"
    pipe = f"'{sys.executable}' -c '{program}' | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("141\n", "")
