"""Fetching from a hub on this machine, over real connections, on good and bad days."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hub_server import HubServer, Repo
from kaiwa.errors import DownloadFailed, KaiwaError, ModelNotFound
from kaiwa.events import Progress
from kaiwa.weights import hub
from kaiwa.weights.huggingface import api, receipts
from kaiwa.weights.huggingface.api import Unreachable

MODEL = hashlib.shake_128(b"model").digest(3 << 20)
OTHER = hashlib.shake_128(b"other").digest(1 << 20)
FOLDER = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}" * 4000,
    "model.safetensors": MODEL,
    "pytorch_model.bin": MODEL,
    "README.md": b"# Tiny",
}
PATIENCE_S = 60

FETCH = """
import sys
from kaiwa.weights import hub
print(hub.resolve(sys.argv[1], on_progress=lambda progress: print(progress.stage, flush=True)))
"""


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "WAITS_S", (0.01, 0.02))


@pytest.fixture
def repo(hub_server: HubServer) -> Repo:
    """A repository of quantizations and one of safetensors; the first is handed out."""
    hub_server.repos["org/tiny"] = Repo(dict(FOLDER))
    hub_server.repos["org/tiny-GGUF"] = Repo({"tiny-Q4_K_M.gguf": MODEL, "tiny-Q8_0.gguf": OTHER})
    return hub_server.repos["org/tiny-GGUF"]


def start(server: HubServer, tmp_path: Path, name: str, **environment: str) -> subprocess.Popen[str]:
    """Another process that fetches, told of the hub as people tell theirs."""
    settings = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "hf-home"), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, name],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **settings},
    )  # fmt: skip


def failure(name: str, kind: type[KaiwaError] = DownloadFailed, **options: str) -> KaiwaError:
    with pytest.raises(kind) as caught:
        hub.resolve(name, **options)  # type: ignore[arg-type]
    return caught.value


def blobs(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "hf").glob("*/blobs/*"))


def test_only_what_is_needed_arrives_and_only_once(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    seen: list[Progress] = []
    path = hub.resolve("org/tiny", on_progress=seen.append)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == {
        name: FOLDER[name] for name in ("config.json", "tokenizer.json", "model.safetensors")
    }
    total = len(MODEL) + 8000 + 23
    assert {progress.total for progress in seen} == {total}
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert done[-1] == total
    asked = list(hub_server.paths)
    assert hub.resolve("org/tiny") == path
    assert hub_server.paths == asked, "a model on disk asks nobody"


def test_the_cache_is_the_one_that_huggingface_hub_reads(hub_server: HubServer, repo: Repo) -> None:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    path = hub.resolve("org/tiny")
    assert try_to_load_from_cache("org/tiny", "config.json") == str(path / "config.json")
    asked = hub_server.files_asked_for()
    assert hf_hub_download("org/tiny", "model.safetensors", local_files_only=True) == str(path / "model.safetensors")
    assert hub_server.files_asked_for() == asked


def test_what_huggingface_hub_fetched_is_not_fetched_again(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    (folder := tmp_path / "hf" / "models--org--tiny-GGUF" / "blobs").mkdir(parents=True)
    (folder / hashlib.sha256(OTHER).hexdigest()).write_bytes(OTHER)
    assert hub.resolve("org/tiny-GGUF:Q8_0").read_bytes() == OTHER
    assert hub_server.files_asked_for() == []


def test_a_quantization_that_nobody_chose_is_told(hub_server: HubServer, repo: Repo) -> None:
    seen: list[Progress] = []
    assert hub.resolve("org/tiny-GGUF", on_progress=seen.append).name == "tiny-Q4_K_M.gguf"
    assert seen[0].stage == "choose"
    assert seen[0].detail == "org/tiny-GGUF is there as Q8_0 too; taking Q4_K_M (choose with org/tiny-GGUF:NAME)"
    assert hub_server.files_asked_for() == ["tiny-Q4_K_M.gguf"]


def test_a_cut_connection_goes_on_where_it_stopped(hub_server: HubServer, repo: Repo) -> None:
    hub_server.cuts = [1_000_000, 500_000, 0]
    hub_server.busy = 1
    assert hub.resolve("org/tiny-GGUF").read_bytes() == MODEL
    starts = [file.partition("#")[2] or "0" for file in hub_server.files_asked_for()]
    assert starts == ["0", "0", "1000000", "1500000", "1500000"]


def test_an_interrupted_fetch_is_resumed_by_the_next_process(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    hub_server.cuts = [1_000_000, 0, 0, 0]
    error = failure("org/tiny-GGUF")
    assert "ended after 1,000,000 of 3,145,728 bytes" in str(error)
    assert "goes on where it stopped" in error.hint
    assert receipts.all_receipts() == []
    seen: list[Progress] = []
    assert hub.resolve("org/tiny-GGUF", on_progress=seen.append).read_bytes() == MODEL
    assert hub_server.files_asked_for()[-1] == "tiny-Q4_K_M.gguf#1000000"
    assert next(progress for progress in seen if progress.stage == "download").done == 1_000_000


def test_a_server_without_ranges_begins_anew(hub_server: HubServer, repo: Repo) -> None:
    hub_server.knows_ranges = False
    hub_server.cuts = [1_000_000]
    seen: list[Progress] = []
    assert hub.resolve("org/tiny-GGUF", on_progress=seen.append).read_bytes() == MODEL
    assert seen[-1].done == len(MODEL)


@pytest.mark.parametrize("left", [MODEL[:999] + b"!", MODEL + b"too long"])
def test_a_damaged_beginning_is_replaced(hub_server: HubServer, repo: Repo, tmp_path: Path, left: bytes) -> None:
    (folder := tmp_path / "hf" / "models--org--tiny-GGUF" / "blobs").mkdir(parents=True)
    (folder / f"{hashlib.sha256(MODEL).hexdigest()}.incomplete").write_bytes(left)
    assert hub.resolve("org/tiny-GGUF").read_bytes() == MODEL


def test_a_wrong_checksum_is_never_kept(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    hub_server.corrupt = {"tiny-Q4_K_M.gguf", "config.json"}
    error = failure("org/tiny-GGUF")
    assert f"the hub says that it has {hashlib.sha256(MODEL).hexdigest()}" in str(error)
    assert "arrived with the checksum" in str(failure("org/tiny"))
    assert blobs(tmp_path) == []
    assert hub.installed() == []
    hub_server.corrupt = set()
    assert hub.resolve("org/tiny-GGUF").read_bytes() == MODEL


def test_two_processes_fetch_once(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    import threading

    hub_server.go_on = threading.Event()
    first = start(hub_server, tmp_path, "org/tiny-GGUF")
    assert hub_server.has_begun.wait(PATIENCE_S)
    second = start(hub_server, tmp_path, "org/tiny-GGUF")
    assert second.stdout is not None
    assert [second.stdout.readline() for _ in range(2)] == ["choose\n", "waiting\n"]
    hub_server.go_on.set()
    outputs = [process.communicate(timeout=PATIENCE_S)[0].splitlines()[-1] for process in (first, second)]
    assert outputs[0] == outputs[1]
    assert Path(outputs[0]).read_bytes() == MODEL
    assert hub_server.files_asked_for() == ["tiny-Q4_K_M.gguf"]


def test_a_killed_process_leaves_its_part_and_no_lock(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    import threading

    hub_server.go_on = threading.Event()
    killed = start(hub_server, tmp_path, "org/tiny-GGUF:Q4_K_M")
    unfinished = tmp_path / "hf-home" / "hub" / "models--org--tiny-GGUF" / "blobs"
    assert hub_server.has_begun.wait(PATIENCE_S)
    wait_for(lambda: any(path.stat().st_size for path in unfinished.glob("*.incomplete")))
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=PATIENCE_S)
    hub_server.go_on.set()
    output, _ = start(hub_server, tmp_path, "org/tiny-GGUF:Q4_K_M").communicate(timeout=PATIENCE_S)
    assert Path(output.splitlines()[-1]).read_bytes() == MODEL
    assert "#" in hub_server.files_asked_for()[-1], "it went on where it stopped"


def wait_for(is_true: Callable[[], object]) -> None:
    import time

    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_offline_by_environment_uses_what_is_here(hub_server: HubServer, repo: Repo, tmp_path: Path) -> None:
    refused = start(hub_server, tmp_path, "org/tiny-GGUF", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE says to stay offline" in refused.communicate(timeout=PATIENCE_S)[1]
    assert hub_server.paths == []
    start(hub_server, tmp_path, "org/tiny-GGUF").communicate(timeout=PATIENCE_S)
    output, _ = start(hub_server, tmp_path, "org/tiny-GGUF", HF_HUB_OFFLINE="1").communicate(timeout=PATIENCE_S)
    assert Path(output.strip()).read_bytes() == MODEL


def test_without_network_a_whole_snapshot_will_do(
    hub_server: HubServer, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    path = hub.resolve("org/tiny")
    for receipt in receipts.all_receipts():
        receipt.discard()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert hub.resolve("org/tiny") == path
    (path / "model.safetensors").unlink()
    error = failure("org/tiny", Unreachable)
    assert "http://127.0.0.1:9 cannot be reached" in str(error)
    assert "works offline" in error.hint


def test_without_network_a_near_name_that_is_here_is_offered(
    hub_server: HubServer, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    hub.resolve("org/tiny-GGUF:Q8_0")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert failure("org/tiny-GGFU:Q8_0").hint.startswith(
        "did you mean 'org/tiny-GGUF:Q8_0'? It is here. Else check the"
    )
    assert failure("some/other").hint.startswith("check the network")


def test_unknown_models_offer_near_names(hub_server: HubServer, repo: Repo) -> None:
    error = failure("org/tiny-ggfu", ModelNotFound)
    assert str(error).startswith("there is no model 'org/tiny-ggfu' on http://127.0.0.1")
    assert error.hint == "did you mean org/tiny or org/tiny-GGUF? Or log in with `hf auth login` if it is yours"
    assert "check its name" in failure("org/unknown", ModelNotFound).hint
    assert "has no revision 'v9'" in str(failure("org/tiny@v9", ModelNotFound))
    assert "has no Q5_K_M" in str(failure("org/tiny-GGUF:Q5_K_M", ModelNotFound))


def test_gated_models_say_what_to_do(hub_server: HubServer, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.is_gated, repo.token = True, "consented"
    hub_server.valid_tokens = {"consented", "other"}
    error = failure("org/tiny-GGUF")
    assert "org/tiny-GGUF is gated" in str(error)
    assert f"accept them at {hub_server.url}/org/tiny-GGUF, then log in" in error.hint
    assert "wait for their consent" in failure("org/tiny-GGUF", token="other").hint
    monkeypatch.setenv("HF_TOKEN", "consented")
    assert hub.resolve("org/tiny-GGUF").read_bytes() == MODEL


def test_a_wrong_token_is_told(hub_server: HubServer, repo: Repo) -> None:
    error = failure("org/tiny-GGUF", token="wrong")
    assert str(error) == "the hub does not know the token that it was given"
    assert f"{hub_server.url}/settings/tokens" in error.hint
    repo.token = "secret"
    hub_server.valid_tokens = {"secret"}
    assert "or it is private" in str(failure("org/tiny-GGUF", ModelNotFound))
    assert hub.resolve("org/tiny-GGUF", token="secret").read_bytes() == MODEL


def test_a_busy_hub_is_asked_again(hub_server: HubServer, repo: Repo) -> None:
    hub_server.too_many = 2
    assert hub.resolve("org/tiny-GGUF").read_bytes() == MODEL
    hub_server.too_many = 100
    error = failure("org/tiny")
    assert "answers no more of your questions for now (429)" in str(error)
    assert "hf auth login" in error.hint
    assert hub_server.too_many == 97  # asked three times


def test_files_may_come_from_elsewhere_which_does_not_get_the_token(hub_server: HubServer, repo: Repo) -> None:
    with HubServer(repos={"org/tiny-GGUF": repo}).serve() as elsewhere:
        hub_server.valid_tokens = {"mine"}
        hub_server.cdn = elsewhere.url.replace("127.0.0.1", "localhost")
        elsewhere.cuts = [1 << 20]
        assert hub.resolve("org/tiny-GGUF:Q4_K_M", token="mine").read_bytes() == MODEL
    assert elsewhere.files_asked_for() == ["tiny-Q4_K_M.gguf", f"tiny-Q4_K_M.gguf#{1 << 20}"]
    assert set(hub_server.tokens) == {"mine"}
    assert set(elsewhere.tokens) == {""}


def test_a_proxy_is_asked_where_there_is_one(
    hub_server: HubServer, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is the proxy here: it is asked for an address that nobody else could find."""
    settings = {"HF_ENDPOINT": "http://hub.invalid", "HTTP_PROXY": hub_server.url, "NO_PROXY": ""}
    fetching = start(hub_server, tmp_path, "org/tiny-GGUF:Q8_0", **settings)
    out, err = fetching.communicate(timeout=PATIENCE_S)
    assert fetching.returncode == 0, err
    assert Path(out.splitlines()[-1]).read_bytes() == OTHER


def test_what_another_process_wrote_to_as_well_is_not_kept(
    hub_server: HubServer, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems that take a lock from everybody."""
    hub_server.go_on = threading.Event()

    def write_too() -> None:
        hub_server.has_begun.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while not (parts := list((tmp_path / "hf").glob("*/blobs/*.incomplete"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        with parts[0].open("ab") as part:
            part.write(b"more")
        hub_server.go_on.set()  # type: ignore[union-attr]

    other = threading.Thread(target=write_too)
    other.start()
    assert "another process wrote to" in str(failure("org/tiny-GGUF:Q8_0"))
    other.join()
    assert hub.resolve("org/tiny-GGUF:Q8_0").read_bytes() == OTHER


def test_a_full_disk_is_seen_before_a_byte_is_fetched(
    hub_server: HubServer, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=1 << 40, used=0, free=65 << 20))
    error = failure("org/tiny-GGUF")
    assert "the model takes 3,145,728 bytes more, and " in str(error)
    assert "68,157,440 free" in str(error)
    assert "HF_HOME" in error.hint
    assert hub_server.files_asked_for() == []


def test_pull_brings_a_model_up_to_date(hub_server: HubServer, repo: Repo) -> None:
    old = hub.resolve("org/tiny-GGUF:Q8_0")
    repo.files["tiny-Q8_0.gguf"] = MODEL[: len(OTHER)]
    assert hub.resolve("org/tiny-GGUF:Q8_0") == old
    assert hub.pull("org/tiny-GGUF:Q8_0").read_bytes() == MODEL[: len(OTHER)]
    assert hub.resolve("org/tiny-GGUF:Q8_0") != old


def test_a_revision_is_another_model(hub_server: HubServer, repo: Repo) -> None:
    repo.revisions = ("main", "v1")
    hub.resolve("org/tiny-GGUF:Q8_0", revision="v1")
    hub.resolve("org/tiny-GGUF:Q8_0")
    assert hub.installed() == ["org/tiny-GGUF:Q8_0", "org/tiny-GGUF@v1:Q8_0"]


def test_short_names_of_a_persons_own(hub_server: HubServer, repo: Repo, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "mine.gguf").touch()
    (home / "models.toml").write_text(
        '["mine:1b"]\nfrom = "org/tiny-GGUF:Q8_0"\noptions = { temperature = 0.1 }\n'
        f'["qwen3:4b"]\nfrom = {json.dumps(str(tmp_path / "mine.gguf"))}\n'
    )
    assert hub.resolve("mine:1b").read_bytes() == OTHER
    assert hub.recommended("mine:1b") == {"temperature": 0.1}
    assert hub.resolve("qwen3:4b") == tmp_path / "mine.gguf"
    (tmp_path / "mine.gguf").unlink()
    assert "stands for" in str(failure("qwen3:4b", ModelNotFound))
    (home / "models.toml").write_text('["mine:1b"]\nfrm = "x"\n')
    error = failure("mine:1b", KaiwaError)
    assert f"{home / 'models.toml'} is not a usable TOML file: the row 'mine:1b'" in str(error)


def test_our_own_short_names_are_names_on_the_hub() -> None:
    from kaiwa.sampling import Sampling
    from kaiwa.weights import short_names

    for name, row in short_names.table().items():
        assert ":" in name
        assert isinstance(row.source, hub.HubName)
        Sampling().updated(row.options)
