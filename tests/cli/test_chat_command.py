"""`kaiwa chat` with the real model: in a pipe and in a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hub_server import HubServer, Repo
from kaiwa.cli.chat import Request, parse
from openai_server import OpenAIServer, Said, text_chunks
from pseudo_terminal import terminal

KAIWA = [sys.executable, "-m", "kaiwa.cli.main"]
GREEDY = ("do_sample=False", "max_new_tokens=16")


def piped(model: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What `kaiwa chat` says to a text on standard input."""
    return subprocess.run(
        [*KAIWA, "chat", str(model), *arguments], input=text, capture_output=True, text=True, timeout=120, check=False
    )


def test_words_are_a_model_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse([]) == Request(None, {})
    assert parse(["top_k=5"]) == Request(None, {"top_k": 5})
    assert parse(["m.gguf", "top-k=5", "stop=END"]) == Request("m.gguf", {"top_k": 5, "stop": ("END",)})
    assert parse(["./a=b.gguf"]) == Request("./a=b.gguf", {})
    seed = ["Qwen/Qwen2.5-0.5B-Instruct", "do_sample=False", "max_new_tokens=10"]
    assert parse(seed) == Request("Qwen/Qwen2.5-0.5B-Instruct", {"do_sample": False, "max_new_tokens": 10})
    with_url = ["qwen", "http://localhost:8000", "stop_strings=END"]
    assert parse(with_url) == Request("qwen", {"stop": ("END",)}, "http://localhost:8000")
    Path("top_k=5").touch()
    assert parse(["top_k=5"]) == Request("top_k=5", {})


def test_in_a_pipe_the_output_is_the_answer_and_nothing_else(model_path: Path) -> None:
    done = piped(model_path, "Hi\n", *GREEDY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n")
    assert 5 < len(done.stdout) < 200
    assert "\x1b" not in done.stdout
    assert piped(model_path, "Hi\n", *GREEDY).stdout == done.stdout


def test_a_pipe_needs_no_terminal_library(model_path: Path) -> None:
    program = (
        "import sys; from kaiwa.cli.main import main; main(sys.argv[1:]); "
        "print({'rich', 'prompt_toolkit', 'pygments', 'markdown_it'} & set(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "chat", str(model_path), "max_new_tokens=1"]
    done = subprocess.run(command, input="Hi", capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "set()\n"


def test_the_system_prompt_matters(model_path: Path) -> None:
    plain = piped(model_path, "Who are you?", *GREEDY)
    pirate = piped(model_path, "Who are you?", *GREEDY, "--system", "You are Blackbeard the pirate.")
    assert plain.stdout != pirate.stdout


def test_an_empty_message_is_refused(model_path: Path) -> None:
    done = piped(model_path, " \n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the message on standard input is empty\nhint: ")


def test_a_message_that_does_not_fit_is_refused(model_path: Path) -> None:
    done = piped(model_path, "many words " * 200, "--context", "128")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the prompt has ")
    assert "the context holds 128" in done.stderr


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    done = piped(path, "Hi")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {path} is not a usable GGUF file: ")
    assert "Traceback" not in done.stderr


def test_a_model_on_another_server() -> None:
    with OpenAIServer([Said(chunks=text_chunks("Hello", " there"))]).serve() as server:
        done = piped(Path("tiny"), "Hi\n", "--url", server.url, "temperature=0.2")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello there\n", "")
        assert server.asked[0]["temperature"] == 0.2
        done = piped(Path("big"), "Hi\n", "--url", server.url)
        assert done.returncode == 2
        assert done.stderr == f"error: {server.url} has no model 'big'\nhint: known are tiny\n"
        done = piped(Path("tiny"), "Hi\n", "--url", server.url, "--threads", "2")
        assert done.stderr.startswith("error: --threads is for models on this machine\n")


def test_a_model_on_the_hub_needs_no_server_first(hub_server: HubServer, tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "golden" / "pipeline"
    hub_server.repos["org/tiny"] = Repo({file.name: file.read_bytes() for file in folder.iterdir()})
    environment = {**os.environ, "HF_ENDPOINT": hub_server.url, "HF_HOME": str(tmp_path / "hf")}
    command = [*KAIWA, "chat", "org/tiny", "do_sample=False", "max_new_tokens=10"]
    done = subprocess.run(command, input="Who are you?", capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) == 11


def test_options_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.2, "top_k": 5, "eos_token_id": 2}')
    with OpenAIServer([Said(chunks=text_chunks("Hello"))]).serve() as server:
        done = piped(Path("tiny"), "Hi\n", server.url, "top_k=7", "--generation-config", str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        assert (server.asked[0]["temperature"], server.asked[0]["top_k"]) == (0.2, 7)


def test_options_of_a_repository_on_the_hub(hub_server: HubServer, tmp_path: Path) -> None:
    hub_server.repos["org/name"] = Repo({"generation_config.json": b'{"top_p": 0.8}', "model.safetensors": b"weights"})
    environment = {**os.environ, "HF_ENDPOINT": hub_server.url, "HF_HOME": str(tmp_path / "hf")}
    for endpoint in (hub_server.url, "http://127.0.0.1:9"):  # the second time without a network
        with OpenAIServer([Said(chunks=text_chunks("Hello"))]).serve() as server:
            command = [*KAIWA, "chat", server.url, "--generation-config", "org/name"]
            environment["HF_ENDPOINT"] = endpoint
            done = subprocess.run(command, input="Hi", capture_output=True, text=True, env=environment, check=False)
            assert (done.stdout, done.stderr) == ("Hello\n", "")
            assert server.asked[0]["top_p"] == 0.8
    assert hub_server.files_asked_for() == ["generation_config.json"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--temperature", "0.2"], "temperature is written temperature=…, without dashes, and for `kaiwa chat` only"),
        (["--top-k=5"], "top_k is written top_k=…"),
        (["--sytem", "x"], "did you mean '--system'?"),
        (["temprature=1"], "did you mean 'temperature'?"),
        (["smollm2"], "known are smollm2:1.7b, smollm2:135m, smollm2:360m"),
        (["--examples-path", "nowhere.yaml"], "write one example a line, as `name: the question`"),
        (["--generation-config", "nowhere.json"], "pass the path of a generation_config.json"),
        (["--load", "nowhere"], "saved chats are kept in "),
    ],
)
def test_slips_of_the_finger(arguments: list[str], hint: str, tmp_path: Path) -> None:
    environment = {**os.environ, "KAIWA_HOME": str(tmp_path)}
    command = [*KAIWA, "chat", *arguments]
    done = subprocess.run(command, input="Hi", capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert f"\nhint: {hint}" in done.stderr


def test_an_unknown_model_is_a_mistake() -> None:
    done = piped(Path("smollm3:135m"), "Hi")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_the_answer(model_path: Path) -> None:
    command = f"printf Hi | '{sys.executable}' -m kaiwa.cli.main chat '{model_path}' max_new_tokens=2000 | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (len(done.stdout), done.stderr) == (1, "")


def test_an_interrupted_pipe_ends_quietly(model_path: Path) -> None:
    running = subprocess.Popen(
        [*KAIWA, "chat", str(model_path), "do_sample=False", "max_new_tokens=2000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # Whoever runs the tests in the background has it ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(b"Write a very long story about a dragon.")
        running.stdin.close()
        assert running.stdout.read(1)
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(30) == 130
        assert running.stderr.read() == b""


def test_a_conversation_in_a_terminal(model_path: Path, tmp_path: Path) -> None:
    with terminal([*KAIWA, "chat", str(model_path), "do_sample=False"], tmp_path) as chat:
        chat.wait_for_prompt(60)
        for text in ("llama, 135 M parameters, Q4_1", "MB weights", "Commands: !help"):
            assert text in chat.everything
        chat.say("!set max_new_tokens=12")
        chat.wait_for("set max_new_tokens=12")
        chat.say("Hey, can you explain gravity to me?")
        chat.wait_for("12 tokens, ", 60)
        chat.wait_for("cut off at max_new_tokens=12")
        chat.wait_for_prompt()
        chat.say("And quantum mechanics?")
        chat.wait_until(lambda: chat.everything.count("cut off") == 2, "second answer", 60)
        last = [row for row in chat.everything.split("\n") if " cached" in row][-1]
        read, cached = (int(part.split()[0]) for part in last.split(" · ")[0].split(", ")[1:])
        assert cached > 2 * read > 0
        chat.wait_for_prompt()
        chat.type("\x04")
        assert chat.wait_for_end() == 0
    kept = json.loads((tmp_path / "chats" / "last.json").read_text())
    assert [message["role"] for message in kept["messages"]] == ["user", "assistant"] * 2


def test_a_chat_as_transformers_arranges_it(tmp_path: Path) -> None:
    """With `--user`, `--examples-path` and `--save-folder`."""
    examples = tmp_path / "examples.yaml"
    examples.write_text("cats:\n  text: 猫は好きですか\ndogs: And dogs?\n", encoding="utf-8")
    answers = [Said(chunks=text_chunks("Yes.")), Said(chunks=text_chunks("Very much."))]
    flags = ["--user", "花子", "--save-folder", str(tmp_path / "kept"), "--examples-path", str(examples)]
    with (
        OpenAIServer(answers).serve() as server,
        terminal([*KAIWA, "chat", "tiny", server.url, *flags], tmp_path) as chat,
    ):
        chat.wait_until(lambda: "花子>" in chat.everything.replace("\0", ""), "prompt", 60)
        chat.type("!example c\t\r")
        chat.wait_for("Yes.")
        chat.type("!example nothing\r")
        chat.wait_for("known are cats, dogs")
        chat.type("\x04")
        assert chat.wait_for_end() == 0
        assert server.asked[0]["messages"] == [{"role": "user", "content": "猫は好きですか"}]
        kept = tmp_path / "kept" / "last.json"
        chat.wait_until(lambda: "goes on with this" in chat.everything, "advice")
        assert str(kept) in chat.everything.replace("\n", "")
    assert json.loads(kept.read_text())["messages"][-1]["content"] == "Yes."


def test_an_answer_goes_on_where_it_was_cut_off(model_path: Path, tmp_path: Path) -> None:
    question = "Tell me about the sea."
    whole = piped(model_path, question, "do_sample=False", "max_new_tokens=12").stdout.strip()
    with terminal([*KAIWA, "chat", str(model_path), "do_sample=False", "max_new_tokens=6"], tmp_path) as chat:
        chat.wait_for_prompt(60)
        chat.say("!continue")
        chat.wait_for("there is no answer to go on with")
        chat.wait_for_prompt()
        chat.say(question)
        chat.wait_for("cut off at max_new_tokens=6; !continue goes on", 60)
        chat.wait_for_prompt()
        chat.say("!continue")
        chat.wait_until(lambda: chat.everything.count("cut off at") == 2, "more of the answer", 60)
        chat.wait_for_prompt()
        chat.type("\x04")
        assert chat.wait_for_end() == 0
    kept = json.loads((tmp_path / "chats" / "last.json").read_text())["messages"]
    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert kept[-1]["content"].strip() == whole
    assert kept[-1]["finish_reason"] == "length"


def test_ctrl_c_stops_the_real_model(model_path: Path, tmp_path: Path) -> None:
    with terminal([*KAIWA, "chat", str(model_path), "do_sample=False"], tmp_path) as chat:
        chat.wait_for_prompt(60)
        chat.say("Write a very long story about a dragon.")
        rows = len(chat.everything.split("\n"))
        chat.wait_until(lambda: len(chat.everything.split("\n")) > rows + 2, "beginning of an answer", 60)
        chat.type("\x03")
        chat.wait_for("stopped; what is written stays in the conversation")
        chat.wait_for_prompt()
        chat.say("!status")
        chat.wait_for("of 8,192 tokens (")
