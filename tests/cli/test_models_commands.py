"""`kaiwa models`, `pull`, `rm` and `show`, with a hub on this machine."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gguf_bytes import gguf_bytes
from hub_server import HubServer, Repo
from kaiwa.cli.main import main
from kaiwa.terminal.words import in_bytes
from kaiwa.weights import hub, quantized_cache

TINY = Path(__file__).parents[1] / "golden" / "families" / "llama-tied"
MARTIAN = gguf_bytes({"general.architecture": "martian", "martian.context_length": 99})
SHARED = {name: (TINY / name).read_bytes() for name in ("config.json", "generation_config.json", "model.safetensors")}
SIZE = in_bytes(sum(map(len, SHARED.values())))


@pytest.fixture(autouse=True)
def repos(hub_server: HubServer) -> HubServer:
    """A safetensors repository, and one of GGUF files of a family that nobody knows."""
    hub_server.repos["org/tiny"] = Repo(dict(SHARED), licence="mit")
    hub_server.repos["org/martian-GGUF"] = Repo({"martian-Q4_K_M.gguf": MARTIAN, "martian-Q8_0.gguf": MARTIAN})
    return hub_server


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main(arguments)
    output = capsys.readouterr()
    return code, output.out, output.err


def test_pull_prints_the_path_and_models_lists_it(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert told(capsys, "models")[1].startswith("no model is here yet; ")
    code, out, err = told(capsys, "pull", "org/tiny")
    assert (code, err) == (0, "")
    assert {path.name for path in Path(out.strip()).iterdir()} == set(SHARED)
    code, out, err = told(capsys, "pull", "org/martian-GGUF")
    assert code == 0
    assert err == "org/martian-GGUF is there as Q8_0 too; taking Q4_K_M (choose with org/martian-GGUF:NAME)\n"
    an_hour_ago = time.time() - 3600
    for place in home.glob("models/hub/org--tiny*"):
        os.utime(place, (an_hour_ago, an_hour_ago))
    header, *rows = told(capsys, "models")[1].splitlines()
    assert header.split("  ")[0] == "model"
    assert [row.split() for row in rows] == [
        ["org/martian-GGUF", f"{len(MARTIAN)}", "bytes", "Q4_K_M", "martian", "99", "just", "now"],
        ["org/tiny", *SIZE.split(), "F32", "llama", "256", "1", "hour", "ago"],
    ]
    listed = json.loads(told(capsys, "models", "--json")[1])["models"]
    assert [model["name"] for model in listed] == ["org/martian-GGUF", "org/tiny"]
    assert "'martian'" in listed[0]["problem"]


def test_show_says_what_a_model_is(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "pull", "org/tiny")
    code, out, _ = told(capsys, "show", "org/tiny")
    assert code == 0
    rows = dict(line.split(None, 1) for line in out.splitlines())
    assert rows["licence"] == "mit"
    assert rows["family"] == "llama"
    assert rows["context"] == "256 tokens"
    assert rows["engine"] == "native"
    assert rows["memory"] == "225 kB weights + 262 kB cache when a context of 256 tokens is full"
    assert rows["template"] == "none, so it cannot converse"
    assert told(capsys, "show", str(TINY), "--template") == (0, "\n", "")
    shown = json.loads(told(capsys, "show", str(TINY), "--json")[1])
    assert (shown["kind"], shown["number_format"], shown["engine"]) == ("safetensors", "F32", "native")
    assert shown["memory"] == {"weights_bytes": 225_216, "cache_bytes": 262_144, "context_length": 256}


def test_show_knows_a_path_from_a_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").touch()
    code, _, err = told(capsys, "show", f"{tmp_path}/tony.gguf")
    assert code == 2
    assert err == f"error: there is no file or folder {tmp_path}/tony.gguf\nhint: did you mean 'tiny.gguf'?\n"
    assert "`kaiwa pull org/tiny` would fetch it" in told(capsys, "show", "org/tiny")[2]


def test_show_says_that_a_model_does_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaiwa.runtime.loading.loader.available_bytes", lambda: 1_000)
    out = told(capsys, "show", str(TINY))[1]
    assert "memory    does not fit now: " in out
    assert "problem" in json.loads(told(capsys, "show", str(TINY), "--json")[1])["memory"]


def test_show_names_the_engine_of_other_families(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "martian", "max_position_embeddings": 7}')
    (tmp_path / "model.safetensors").write_bytes(SHARED["model.safetensors"])
    out = told(capsys, "show", str(tmp_path))[1]
    assert "engine    torch (not installed: pip install 'kaiwa[torch]')" in out
    assert "the built-in engine knows" in out
    told(capsys, "pull", "org/martian-GGUF:Q8_0")
    assert "engine    llama-cpp" in told(capsys, "show", "org/martian-GGUF:Q8_0")[1]


def test_rm_gives_the_space_back(capsys: pytest.CaptureFixture[str], tmp_path: Path, repos: HubServer) -> None:
    repos.repos["org/tiny"].revisions = ("main", "v1")
    path = hub.resolve("org/tiny")
    hub.resolve("org/tiny@v1")
    weights = quantized_cache.folder() / "tiny-int8-abc" / "key"
    weights.mkdir(parents=True)
    (weights / "weights.gguf").write_bytes(b"x" * 1000)
    (weights / "note.json").write_text(json.dumps({"source": str(path.resolve())}))
    assert "tiny-int8-abc" in told(capsys, "models")[1]
    code, out, _ = told(capsys, "rm", "org/tiny@v1")
    assert code == 0
    assert "tiny-int8-abc" not in told(capsys, "models")[1], "what was made of a model goes with it"
    assert path.is_dir(), "another name needs these files"
    code, out, _ = told(capsys, "rm", "org/tiny")
    assert out == f"removed org/tiny: {SIZE} are free again\n"
    assert not list((tmp_path / "hf").glob("models--*"))
    assert told(capsys, "rm", "org/tiny")[0] == 2


def test_quantized_weights_go_alone(capsys: pytest.CaptureFixture[str]) -> None:
    weights = quantized_cache.folder() / "tiny-int8-abc" / "key"
    weights.mkdir(parents=True)
    (weights / "note.json").write_text(json.dumps({"source": "/elsewhere"}))
    assert told(capsys, "rm", "tiny-int8-abc")[0] == 0
    assert not weights.exists()


def test_names_that_are_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "pull", "org/tiny")
    code, _, err = told(capsys, "show", "org/tinny")
    assert code == 2
    assert err == (
        "error: 'org/tinny' is not on this machine\n"
        "hint: did you mean 'org/tiny'?; `kaiwa pull org/tinny` would fetch it\n"
    )
    assert told(capsys, "pull", "org/unknown")[0] == 2
    assert told(capsys, "pull", "qwen9:4b")[0] == 2


def test_short_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "models", "--known")[1]
    assert "qwen3:4b              Qwen/Qwen3-4B-GGUF" in out
    assert "smollm2:135m" in out
    assert {"name": "llama3.2:1b", "source": "bartowski/Llama-3.2-1B-Instruct-GGUF"} in json.loads(
        told(capsys, "models", "--known", "--json")[1]
    )
