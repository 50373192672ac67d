"""What goes over plain HTTP beside the frames: logging in, and files."""

from __future__ import annotations

from typing import Literal

from kaiwa.apps.protocol.records import Record, User


class LoginWay(Record):
    """A way to log in. "password" is `POST api/login`; "oauth" is a link to `url`, relative to the page."""

    kind: Literal["password", "oauth"]
    id: str
    name: str
    url: str | None = None


class AuthInfo(Record):
    """`GET api/auth`: who is logged in, and how to. Without `is_required` everybody may chat."""

    is_required: bool
    user: User | None
    ways: tuple[LoginWay, ...]


class Login(Record):
    """The body of `POST api/login`. Answered by `AuthInfo`, or 401 with a `Problem`."""

    username: str
    password: str
