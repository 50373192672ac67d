"""llama.cpp in a child process: for GGUF files of families that the built-in engine does not know."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import gguf
import pytest

import kaiwa as kw
from kaiwa.engines.llama_cpp import LlamaCppModel
from kaiwa.errors import ContextOverflow, EngineCrashed, InvalidOption, TemplateError, UnsupportedModel
from kaiwa.events import Finished, TextDelta
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.process.model_process import in_child
from required import absent

PATIENCE_S = 30


@pytest.fixture(autouse=True, scope="module")
def _llama_cpp() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        absent("xllamacpp is not installed")


@pytest.fixture(scope="module")
def foreign(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model under the name of a family that llama.cpp knows and the built-in engine does not."""
    path = tmp_path_factory.mktemp("foreign") / "foreign.gguf"
    reader = gguf.GGUFReader(model_path)
    writer = gguf.GGUFWriter(path, "exaone")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = field.types[0]
            inner = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(re.sub("^llama", "exaone", name), field.contents(), kind, inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def model(foreign: Path) -> Iterator[LlamaCppModel]:
    with kw.LLM(foreign, threads=1, context_length=512) as model:
        assert isinstance(model, LlamaCppModel)
        yield model


def test_a_foreign_family_answers_by_itself(model: LlamaCppModel) -> None:
    card = model.card
    assert (card.name, card.context_length, card.number_format) == ("foreign.gguf", 512, "Q4_1")
    assert card.engine.startswith("llama.cpp (xllamacpp ")
    reply = model.chat("Hi", max_new_tokens=5, do_sample=False)
    assert (reply.finish_reason, reply.usage.generated_tokens) == ("length", 5)
    assert asyncio.run(model.achat("Hi", max_new_tokens=5, do_sample=False)).text == reply.text
    *_, last = model.stream("Hi", max_new_tokens=3)
    assert isinstance(last, Finished)


def test_a_pool_has_it_in_a_child_like_any_other(foreign: Path) -> None:
    with ModelPool() as pool:
        pool.add("foreign", in_child(foreign, threads=1, context_length=512, cache_dir=None))
        with pool.using("foreign") as model:
            assert pool.status("foreign").num_bytes == foreign.stat().st_size
            assert model.chat("Hi", max_new_tokens=5, do_sample=False).usage.generated_tokens == 5
            stream = model.stream("Tell me a long story", max_new_tokens=400, do_sample=False)
            next(stream)
            stream.cancel()
            *_, last = stream
            assert isinstance(last, Finished)
            assert last.finish_reason == "cancelled"
            with pytest.raises(UnsupportedModel, match="makes no vectors"):
                model.embed(["Hi"])


def test_answers_in_every_shape(model: LlamaCppModel) -> None:
    assert model.card.family == "exaone"
    city = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": city}}
    reply = model.chat("Name a city.", response_format=shape, max_new_tokens=40, do_sample=False)
    assert json.loads(reply.text)["city"] in ("Paris", "Rome")
    events = model.stream("Hi", num_logprobs=2, max_new_tokens=2, do_sample=False)
    first = next(event for event in events if event.text)
    assert isinstance(first, TextDelta)
    assert len(first.logprobs[0].best) == 2
    reply = model.chat("Count: 1, 2, 3, 4", stop=",", max_new_tokens=40, do_sample=False)
    assert "," not in reply.text
    assert model.detokenize(model.tokenize("Grüße <|im_end|>")) == "Grüße <|im_end|>"
    seeded = [model.chat("Hi", seed=7, temperature=1.5, max_new_tokens=6).text for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_what_it_cannot_do_is_an_error(model: LlamaCppModel) -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"sun in {city}"

    with pytest.raises(TemplateError, match="has no place for tools"):
        model.chat("What is the weather?", tools=[weather])
    with pytest.raises(ContextOverflow) as caught:
        model.chat("many words " * 600)
    assert caught.value.context_length == 512
    with pytest.raises(UnsupportedModel, match="makes no vectors"):
        model.embed(["Hi"])
    with pytest.raises(InvalidOption, match="temprature"):
        model.chat("Hi", temprature=1)


def test_two_chats_at_once_and_one_that_is_stopped(model: LlamaCppModel) -> None:
    async def both() -> list[str]:
        asked = [model.achat(f"Say {word}.", max_new_tokens=8, do_sample=False) for word in ("one", "two")]
        return [reply.text for reply in await asyncio.gather(*asked)]

    assert asyncio.run(both()) == [
        model.chat(f"Say {word}.", max_new_tokens=8, do_sample=False).text for word in ("one", "two")
    ]
    events = model.stream("Write a very long story.", max_new_tokens=400)
    assert next(events).text
    events.cancel()
    *_, last = events
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    assert model.chat("Hi", max_new_tokens=1).usage.generated_tokens == 1


def test_a_process_that_is_killed_is_a_crash(model_path: Path) -> None:
    with LlamaCppModel(model_path, threads=1, context_length=256) as model:
        events = model.stream("Write a very long story.", max_new_tokens=200)
        assert next(events).text
        os.kill(model._process.pid, signal.SIGKILL)
        with pytest.raises(EngineCrashed, match="ended by itself") as caught:
            list(events)
        assert caught.value.exit_code == -signal.SIGKILL
        with pytest.raises(EngineCrashed):
            model.chat("Hi")


def test_it_answers_in_a_pipeline_and_in_a_pipe(foreign: Path) -> None:
    question = [{"role": "user", "content": "Say hello."}]
    small = {"context_length": 256, "threads": 1}
    with kw.pipeline("text-generation", model=str(foreign), model_kwargs=small) as generate:
        answers = generate([question, question], max_new_tokens=5, do_sample=False)
    texts = {answer[0]["generated_text"][-1]["content"] for answer in answers}
    command = [sys.executable, "-m", "kaiwa.cli.main", "chat", str(foreign), "do_sample=False", "max_new_tokens=5"]
    command += ["--context", "256", "--threads", "1"]
    done = subprocess.run(command, input="Say hello.", capture_output=True, text=True, check=True)
    assert texts == {done.stdout.rstrip("\n")}


def test_its_port_is_closed_to_others(model: LlamaCppModel) -> None:
    address = model._url
    assert address.startswith("http://127.0.0.1:")
    request = urllib.request.Request(f"{address}/completions", data=b'{"prompt": "Hi"}')
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request)
    arguments = Path(f"/proc/{model._process.pid}/cmdline")
    if arguments.exists():
        assert b"api" not in arguments.read_bytes()
        assert len(arguments.read_bytes().split(b"\0")) == 4


def test_known_families_may_run_there(model_path: Path) -> None:
    with kw.LLM(model_path, engine="llama-cpp", threads=1, context_length=256) as model:
        assert "llama.cpp" in model.card.engine
        process = model._process  # type: ignore[attr-defined]
        assert "Hello" in model.chat("Say hello.", max_new_tokens=8, do_sample=False).text
    assert process.poll() == 0


def test_it_ends_with_its_parent(model_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from kaiwa.engines.llama_cpp import LlamaCppModel; "
        "model = LlamaCppModel(Path(sys.argv[1]), threads=1, context_length=256); "
        "print(model._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(model_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + PATIENCE_S
    while _is_running(child):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_llama_cpp_cannot_load_either(tmp_path: Path) -> None:
    path = tmp_path / "martian.gguf"
    writer = gguf.GGUFWriter(path, "martian")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(UnsupportedModel, match=r"llama.cpp cannot load .*martian\.gguf"):
        kw.LLM(path)
    with pytest.raises(InvalidOption, match="quantization='int8' is impossible"):
        LlamaCppModel(path, quantization="int8")
    with pytest.raises(UnsupportedModel, match="'martian'"):
        kw.LLM(path, engine="native")


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "martian.gguf"
    writer = gguf.GGUFWriter(path, "martian")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedModel, match="family 'martian'") as caught:
        kw.LLM(path)
    assert caught.value.hint.startswith("pip install 'kaiwa[llama-cpp]'")
