"""A hub and a home of their own for tests of downloads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hub_server import HubServer


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for Kaiwa."""
    folder = tmp_path / "home"
    monkeypatch.setenv("KAIWA_HOME", str(folder))
    return folder


@pytest.fixture
def hub_server(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub on this machine, which `huggingface_hub` takes for the real one, and an empty cache."""
    from huggingface_hub import close_session, constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    with HubServer().serve() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield server
    close_session()
