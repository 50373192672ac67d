"""llama.cpp in a child process: for GGUF files of families that the built-in engine does not know."""

from __future__ import annotations

import asyncio
import importlib.util
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
from kaiwa.errors import InvalidOption, UnsupportedModel
from kaiwa.events import Finished
from kaiwa.runtime.pool import ModelPool
from kaiwa.runtime.process import in_child
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
            with pytest.raises(UnsupportedModel, match="gives no vectors"):
                model.embed(["Hi"])


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
