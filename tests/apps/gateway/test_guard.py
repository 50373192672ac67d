"""Who may speak to an app, and what its answers allow a browser to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

import kaiwa as kw
from app_wire import Wire, http, served
from kaiwa.apps.serving import Settings, check, is_loopback
from kaiwa.errors import InvalidApp, InvalidOption


def app(**options: object) -> kw.App:
    made = kw.App("Quiet", **options)  # type: ignore[arg-type]
    made.on_message(lambda: None)
    return made


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.:80@evil.example"])
def test_a_foreign_host_is_refused(tmp_path: Path, host: str) -> None:
    with served(app(), tmp_path) as port, http(port) as client:
        for path in ("/", "/api/auth", "/api/health"):
            answer = client.get(path, headers={"Host": host})
            assert answer.status_code in (400, 403)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "file://"])
def test_a_foreign_origin_cannot_open_a_socket_or_post(tmp_path: Path, origin: str) -> None:
    with served(app(), tmp_path) as port:
        with pytest.raises(InvalidStatus):
            Wire(port, headers={"Origin": origin})
        with http(port, headers={"Origin": origin}) as client:
            for path in ("/api/commands?connection=x", "/api/login", "/api/logout"):
                answer = client.post(path, json={})
                assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
            assert client.put("/api/files/a/b").status_code == 403
            assert "access-control-allow-origin" not in client.get("/api/auth").headers


def test_the_own_origin_may(tmp_path: Path) -> None:
    with served(app(), tmp_path) as port, Wire(port, headers={"Origin": f"http://127.0.0.1:{port}"}) as page:
        page.hello()


def test_an_allowed_origin_may_frame_the_app(tmp_path: Path) -> None:
    with served(app(allowed_origins=["https://Example.org"]), tmp_path) as port, http(port) as client:
        policy = client.get("/").headers["content-security-policy"]
        assert policy.endswith("frame-ancestors https://example.org")
        Wire(port, headers={"Origin": "https://example.org"}).hello().close()


def test_headers_keep_a_page_from_running_what_is_not_its_own(tmp_path: Path) -> None:
    with served(app(sources=["https://pictures.example"]), tmp_path) as port, http(port) as client:
        headers = client.get("/").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
        assert "img-src 'self' data: blob: https://pictures.example;" in policy
        assert policy.endswith("frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/../secret", "/..%2fsecret", "/assets/../../x.py", "/nothing.js", "/api/none"])
def test_no_path_leads_out_of_the_page(tmp_path: Path, path: str) -> None:
    with served(app(), tmp_path) as port, http(port) as client:
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"


def test_a_body_must_be_json_by_its_type(tmp_path: Path) -> None:
    with served(app(), tmp_path) as port, http(port) as client, client.stream("GET", "/api/events?connection=c"):
        answer = client.post("/api/commands?connection=c", content="{}", headers={"Content-Type": "text/plain"})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_other_machines_need_a_login_or_a_word() -> None:
    with pytest.raises(InvalidApp, match="everybody on the network"):
        check(app(), Settings(host="0.0.0.0"))
    check(app(), Settings(host="0.0.0.0", allow_anyone=True))
    with_login = app()
    with_login.password_auth_callback(lambda username, password: None)
    check(with_login, Settings(host="0.0.0.0"))
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert not is_loopback("example.org")


def test_what_is_no_origin_is_refused() -> None:
    for origin in ("example.org", "https://example.org/path", "ftp://example.org", "*"):
        with pytest.raises(InvalidOption, match="is no origin"):
            kw.App(allowed_origins=[origin])
