"""What all tests share: a home of their own, the real default model, and a watch for what they leave behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from required import absent

pytest_plugins = ["hub_fixtures"]

MODEL_FILES = (".gguf", ".safetensors")
PATIENCE_S = 2.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what people see anew instead of comparing it")


@pytest.fixture(scope="session")
def rewrite(pytestconfig: pytest.Config) -> bool:
    """Whether tests write their golden texts and tables anew; the difference is then reviewed."""
    return bool(pytestconfig.getoption("--rewrite"))


@pytest.fixture(scope="session", autouse=True)
def tests_home() -> Iterator[Path]:
    """Kaiwa's folder while tests run: never the person's own, and kept between runs because it holds a model."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(caches) / "kaiwa-tests"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAIWA_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def model_path(tests_home: Path) -> Path:
    """The file of the default model, fetched once per person."""
    from kaiwa.errors import DownloadFailed
    from kaiwa.weights import hub

    try:
        return hub.resolve("smollm2:135m")
    except DownloadFailed as error:
        absent(f"the default model cannot be fetched: {error}")


@pytest.fixture(autouse=True)
def leak_detector() -> Iterator[None]:
    """Fail a test that leaves a thread running or a file open. Pending tasks fail as unraisable warnings already."""
    threads, files = set(threading.enumerate()), open_files()
    yield
    until = time.monotonic() + PATIENCE_S
    while leaked_threads := [thread.name for thread in threading.enumerate() if thread not in threads]:
        if time.monotonic() > until:
            pytest.fail(f"threads left running: {', '.join(leaked_threads)}")
        time.sleep(0.01)
    if open_files() - files:
        gc.collect()
        if leaked_files := open_files() - files:
            pytest.fail(f"files left open: {', '.join(sorted(leaked_files))}")


def open_files() -> set[str]:
    """Regular files that this process holds open and model files that it has mapped; none where the system hides it."""
    try:
        descriptors = list(Path("/proc/self/fd").iterdir())
        mapped = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    except OSError:
        return set()
    held = set()
    for descriptor in descriptors:
        try:
            target = descriptor.readlink()
        except OSError:
            continue  # the descriptor of the listing itself, or one that another thread closed meanwhile
        if target.is_file() and "/proc/" not in str(target):
            held.add(str(target))
    return held | {path for path in mapped if path.endswith(MODEL_FILES)}
