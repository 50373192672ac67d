"""Logging in through a provider: a real one, on this machine, that keeps to the rules."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

import kaiwa as kw
from app_wire import Wire, http, served
from kaiwa.apps.gateway import oauth
from kaiwa.apps.gateway.oauth import Provider


class Handler(BaseHTTPRequestHandler):
    """Gives a token for the code "good", to who knows the secret and what the challenge was made of."""

    challenges: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        digest = hashlib.sha256(form["code_verifier"][0].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_good = form["code"] == ["good"] and form["client_secret"] == ["hush"] and challenge == self.challenges[-1]
        self._answer(200 if is_good else 400, b'{"access_token": "token"}')

    def do_GET(self) -> None:
        is_good = self.headers["Authorization"] == "Bearer token"
        self._answer(200 if is_good else 401, b'{"login": "ann", "name": "Ann", "team": "blue"}')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    addresses = [f"{base}/{page}" for page in ("authorize", "token", "user")]
    row = Provider("home", "Home", *addresses, "all", lambda user: user["login"])
    monkeypatch.setattr(oauth, "PROVIDERS", (row,))
    monkeypatch.setenv("OAUTH_HOME_CLIENT_ID", "kaiwa")
    monkeypatch.setenv("OAUTH_HOME_CLIENT_SECRET", "hush")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def app() -> kw.App:
    app = kw.App("Club")
    app.on_message(lambda: None)

    @app.oauth_callback
    async def enter(provider_id: str, token: str, raw: dict[str, Any], default: kw.User) -> kw.User | None:
        assert (provider_id, token) == ("home", "token")
        return default if raw["team"] == "blue" else None

    return app


def begin(client: Any) -> dict[str, str]:
    """Go to the provider; what the app has sent along."""
    answer = client.get("/api/oauth/home")
    assert answer.status_code == 303
    query = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    Handler.challenges.append(query["code_challenge"])
    return query


@pytest.mark.usefixtures("provider")
def test_somebody_comes_back_from_a_provider_and_is_logged_in(app: kw.App, tmp_path: Path) -> None:
    with served(app, tmp_path) as port, http(port) as client:
        way = {"kind": "oauth", "id": "home", "name": "Home", "url": "api/oauth/home"}
        assert client.get("/api/auth").json()["ways"] == [way]
        query = begin(client)
        assert query["redirect_uri"] == f"http://127.0.0.1:{port}/api/oauth/home/callback"
        answer = client.get("/api/oauth/home/callback", params={"code": "good", "state": query["state"]})
        assert (answer.status_code, answer.headers["location"]) == (303, f"http://127.0.0.1:{port}/")
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        with Wire(port, headers={"Cookie": cookie}) as page:
            page.hello()
            assert page.frames[0]["user"] == {"identifier": "ann", "display_name": "Ann"}


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(("code", "state"), [("bad", None), ("good", "made-up"), ("", None)])
def test_nobody_gets_in_with_a_wrong_code_or_another_browsers_state(
    app: kw.App, tmp_path: Path, code: str, state: str | None
) -> None:
    with served(app, tmp_path) as port, http(port) as client:
        query = begin(client)
        answer = client.get("/api/oauth/home/callback", params={"code": code, "state": state or query["state"]})
        assert (answer.status_code, answer.json()["code"]) == (401, "login")
        assert client.get("/api/auth").json()["user"] is None
    with served(app, tmp_path) as port, http(port) as client:
        answer = client.get("/api/oauth/home/callback", params={"code": "good", "state": query["state"]})
        assert answer.status_code == 401


@pytest.mark.usefixtures("provider")
def test_a_provider_that_is_not_set_up(app: kw.App, tmp_path: Path) -> None:
    with served(app, tmp_path) as port, http(port) as client:
        assert client.get("/api/oauth/github").status_code == 404


def test_every_row_of_the_table_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in oauth.PROVIDERS:
        monkeypatch.setenv(f"OAUTH_{row.id.upper().replace('-', '_')}_DOMAIN", "login.example")
        for url in (row.authorize_url, row.token_url, row.user_url):
            assert urlsplit(row.url(url)).scheme == "https"
        assert row.identify({"login": "ann", "email": "ann", "sub": "1"}) == "ann"
    assert oauth.configured() == []
