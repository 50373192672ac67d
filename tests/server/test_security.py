"""Who may come in, and what may be brought: hostile requests against a real server."""

from __future__ import annotations

import contextlib
import json
import socket

import httpx2
import pytest
from openai import AuthenticationError

from kaiwa.errors import InvalidOption
from kaiwa.server.settings import ServerSettings
from live import KEY, MODEL, Live, serve
from small_model import echoes

BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}
PATH = "/v1/chat/completions"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_an_open_port_needs_a_key(host: str) -> None:
    with pytest.raises(InvalidOption, match="can be reached from other machines, and there is no key"):
        ServerSettings(host=host)
    assert ServerSettings(host=host, api_keys=("long-enough",)).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_needs_none(host: str) -> None:
    assert ServerSettings(host=host).api_keys == ()


@pytest.mark.parametrize(
    "options",
    [
        {"api_keys": ("short",)},
        {"api_keys": ("with a space",)},
        {"allowed_origins": ("*",)},
        {"allowed_origins": ("example.org",)},
        {"allowed_origins": ("https://example.org/",)},
        {"port": 70000},
    ],
)
def test_impossible_settings(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        ServerSettings(**options)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "evil.example"}, 403, "host_not_allowed"),
        ({"host": "evil.example:8000"}, 403, "host_not_allowed"),
        ({"host": "localhost.evil.example"}, 403, "host_not_allowed"),
        ({"host": "192.168.1.7"}, 403, "host_not_allowed"),
        ({"host": ""}, 403, "host_not_allowed"),
        ({"origin": "https://evil.example"}, 403, "origin_not_allowed"),
        ({"origin": "null"}, 403, "origin_not_allowed"),
        ({"origin": "http://localhost:1"}, 403, "origin_not_allowed"),
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
        ({"content-type": "multipart/form-data; boundary=x"}, 415, "unsupported_media_type"),
        ({"content-type": ""}, 415, "unsupported_media_type"),
    ],
)
def test_hostile_headers(echo: Live, headers: dict[str, str], status: int, code: str) -> None:
    with echo.http() as client:
        response = client.post(PATH, content=json.dumps(BODY), headers={"content-type": "application/json", **headers})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine(echo: Live, host: str) -> None:
    with echo.http() as client:
        assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_type"),
        (b"null", 400, "invalid_type"),
        (b'"text"', 400, "invalid_type"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 400, "invalid_json"),
        (b'{"model": NaN}', 400, "invalid_json"),
        (b'{"model": "\xff"}', 400, "invalid_json"),
        (b'{"model": "\\ud800"}', 400, "invalid_json"),
        (b'{"seed": ' + b"9" * 5000 + b"}", 400, None),
        (json.dumps({**BODY, "max_tokens": 10**30}).encode(), 200, None),
        (json.dumps({**BODY, "temperature": 1e308}).encode(), 400, "invalid_value"),
        (json.dumps({**BODY, "stop": ["x"] * 1000}).encode(), 400, "invalid_value"),
        (json.dumps({**BODY, "model": "../../etc/passwd"}).encode(), 404, "model_not_found"),
        (json.dumps({**BODY, "model": "x" * 100_000}).encode(), 400, "invalid_value"),
        (json.dumps({**BODY, "__proto__": {"admin": True}}).encode(), 400, "unknown_parameter"),
        (json.dumps({**BODY, "x" * 100_000: 1}).encode(), 400, "unknown_parameter"),
        (b" " * (17 * 2**20), 413, "request_too_large"),
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else None,
)
def test_hostile_bodies(echo: Live, body: bytes, status: int, code: str | None) -> None:
    with echo.http() as client:
        response = client.post(PATH, content=body, headers={"content-type": "application/json"})
        assert (response.status_code, len(response.content) < 2000) == (status, True)
        assert code is None or response.json()["error"]["code"] == code
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("is_announced", [True, False])
def test_who_sends_all_of_a_body_that_is_too_large_hears_why_it_is_refused(is_announced: bool) -> None:
    with serve(echoes(), max_body_bytes=200_000) as live:
        host, port = live.url.removeprefix("http://").split(":")
        size = 2_000_000
        length = f"Content-Length: {size}" if is_announced else "Transfer-Encoding: chunked"
        body = b" " * size if is_announced else b"%x\r\n%s\r\n0\r\n\r\n" % (size, b" " * size)
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_body_without_an_end_is_cut_off() -> None:
    with serve(echoes(), max_body_bytes=1000) as live, live.http() as client:
        pieces = (b" " * 100 for _ in range(1000))
        try:
            response = client.post(PATH, content=pieces, headers={"content-type": "application/json"})
        except httpx2.WriteError:  # the server hung up while we were still talking
            return
        assert response.status_code == 413


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 2**20 + b"\r\n\r\n",
    ],
    ids=["no host", "TLS", "negative length", "two hosts", "long header"],
)
def test_what_is_hardly_http(echo: Live, raw: bytes) -> None:
    host, port = echo.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        answer = b""
        with contextlib.suppress(OSError):  # the server may hang up while we are still talking
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1000)
    assert answer.split(b" ")[1:2] in ([b"400"], [b"403"], [b"431"]) or not answer
    with echo.http() as client:
        assert client.get("/health").status_code == 200


def test_keys() -> None:
    with serve(echoes(), api_keys=(KEY, "another-key")) as live:
        for key in (KEY, "another-key"):
            with live.openai(key) as client:
                assert client.chat.completions.create(**BODY).choices[0].message.content == "Hello"
        with live.openai("wrong-key") as client, pytest.raises(AuthenticationError, match="does not open"):
            client.models.list()
        assert live.post(PATH, BODY).status_code == 401
        assert live.post(PATH, BODY, authorization=f"Basic {KEY}").status_code == 401
        assert live.post(PATH, BODY, x_api_key=KEY).status_code == 200
        with live.http() as client:
            assert client.get("/health").status_code == 200
            assert client.get("/v1/models").headers["www-authenticate"] == "Bearer"


def test_a_page_that_is_allowed_may_read_answers_and_errors() -> None:
    origin = "https://example.org"
    with serve(echoes(), allowed_origins=(origin,), api_keys=(KEY,)) as live, live.http() as client:
        preflight = client.options(
            PATH,
            headers={
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type",
            },
        )
        assert preflight.status_code == 204
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        headers = {"origin": origin, "authorization": f"Bearer {KEY}"}
        for body, status in ((BODY, 200), ({}, 400)):
            response = client.post(PATH, json=body, headers=headers)
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == origin
            assert "access-control-allow-credentials" not in response.headers
        assert client.post(PATH, json=BODY, headers={"origin": origin}).status_code == 401


def test_a_page_of_the_server_itself_may_call_it(echo: Live) -> None:
    assert echo.post(PATH, BODY, origin=echo.url).status_code == 200


def test_a_preflight_of_another_page_is_refused(echo: Live) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    with echo.http() as client:
        assert client.options(PATH, headers=headers).status_code == 403
