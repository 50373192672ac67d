"""Logging in, and seeing one's own chats only."""

from __future__ import annotations

from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

import kaiwa as kw
from app_wire import Wire, http, served


def guarded() -> kw.App:
    app = kw.App("Vault")

    @app.password_auth_callback
    async def who(username: str, password: str) -> kw.User | None:
        return kw.User(username, metadata={"role": "guest"}) if password == f"{username}!" else None

    @app.on_logout
    def log_out() -> None: ...

    @app.on_message
    async def answer() -> None:
        user = kw.user_session.get("user")
        await kw.Message(f"{user.identifier}, {user.metadata['role']}").send()

    return app


def cookie_of(port: int, name: str) -> dict[str, str]:
    with http(port) as client:
        answer = client.post("/api/login", json={"username": name, "password": f"{name}!"})
        assert answer.json()["user"] == {"identifier": name, "display_name": name}
        assert "httponly" in answer.headers["set-cookie"].lower()
        assert "samesite=lax" in answer.headers["set-cookie"].lower()
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}


def test_nobody_gets_in_without_a_login(tmp_path: Path) -> None:
    with served(guarded(), tmp_path) as port, http(port) as client:
        info = client.get("/api/auth").json()
        assert info == {
            "is_required": True,
            "user": None,
            "ways": [{"kind": "password", "id": "password", "name": "Password", "url": None}],
        }
        assert client.get("/api/events?connection=c").status_code == 401
        with pytest.raises(InvalidStatus):
            Wire(port)
        for body in ({"username": "ann", "password": "wrong"}, {"username": "", "password": ""}):
            assert client.post("/api/login", json=body).status_code == 401
        assert client.post("/api/login", json={"username": "ann"}).status_code == 400


def test_each_sees_their_own_chats(tmp_path: Path) -> None:
    with served(guarded(), tmp_path) as port:
        with Wire(port, headers=cookie_of(port, "ann")) as ann:
            ann.hello().new_chat()
            ann.say("Who am I?")
            ann.until_idle()
            assert ann.texts[-1] == "ann, guest"
        with Wire(port, headers=cookie_of(port, "bob")) as bob:
            bob.hello()
            bob.ask("list_chats")
            assert next(frame for frame in bob.frames if frame["type"] == "chat_list")["chats"] == []
            bob.chat_id = ann.chat_id
            for command in (
                {"type": "open_chat"},
                {"type": "say", "message_id": "m", "text": "x"},
                {"type": "delete_chat"},
                {"type": "new_chat"},
            ):
                assert bob.ask(**command)["problem"]["code"] == "not_found"


def test_a_cookie_that_was_changed_is_none(tmp_path: Path) -> None:
    with served(guarded(), tmp_path) as port:
        cookie = cookie_of(port, "ann")["Cookie"]
        for wrong in (cookie[:-1] + ("0" if cookie[-1] != "0" else "1"), cookie.replace("=", "=x", 1), "kaiwa_login=x"):
            with pytest.raises(InvalidStatus):
                Wire(port, headers={"Cookie": wrong})


def test_logging_out_takes_the_cookie_away(tmp_path: Path) -> None:
    with served(guarded(), tmp_path) as port, http(port, headers=cookie_of(port, "ann")) as client:
        assert client.get("/api/auth").json()["user"]["identifier"] == "ann"
        assert "max-age=0" in client.post("/api/logout").headers["set-cookie"].lower()


def test_a_login_by_headers(tmp_path: Path) -> None:
    app = kw.App("Proxied")
    app.on_message(lambda: None)

    @app.header_auth_callback
    def who(headers: dict[str, str]) -> kw.User | None:
        return kw.User(headers["X-User"]) if "X-User" in headers else None

    with served(app, tmp_path) as port:
        with pytest.raises(InvalidStatus):
            Wire(port)
        with Wire(port, headers={"X-User": "eve"}) as page:
            page.hello()
            assert page.frames[0]["user"]["identifier"] == "eve"


def test_on_a_shared_server_browsers_are_told_apart(tmp_path: Path) -> None:
    app = kw.App("Open")
    app.on_message(lambda: None)
    with served(app, tmp_path, is_shared=True) as port, http(port) as one, http(port) as other:
        one.get("/"), other.get("/")
        cookies = [{"Cookie": "; ".join(f"{k}={v}" for k, v in client.cookies.items())} for client in (one, other)]
        with Wire(port, headers=cookies[0]) as first, Wire(port, headers=cookies[1]) as second:
            first.hello().new_chat()
            first.say("mine")
            second.hello()
            second.chat_id = first.chat_id
            assert second.ask("open_chat")["problem"]["code"] == "not_found"
        with Wire(port, headers=cookies[0]) as again:
            again.hello().open_chat(first.chat_id)
