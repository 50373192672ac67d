"""Identities: whose chats a connection may see, by its cookie or its headers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response

from kaiwa.apps.gateway.cookies import Seal
from kaiwa.apps.user import User
from kaiwa.apps.work.calling import Calling
from kaiwa.apps.work.ids import new_id
from kaiwa.apps.work.page import Identity

LOCAL = Identity("local")
LOGIN_S = 15 * 24 * 3600.0


class Identities:
    """Who is who, for one app.

    On a person's own machine everybody is the same one. Where `is_shared`, and nobody has to log in, each browser is
    somebody else.
    """

    def __init__(self, calling: Calling, seal: Seal, *, is_shared: bool) -> None:
        self._calling = calling
        self._seal = seal
        self._is_shared = is_shared

    async def of(self, connection: HTTPConnection) -> Identity | None:
        """Whose connection this is; None where they have to log in."""
        if self._calling.app.needs_login:
            user = self._by_cookie(connection) or await self._by_headers(connection)
            return None if user is None else Identity(f"user:{user.identifier}", user)
        if not self._is_shared:
            return LOCAL
        visitor = self._seal.open(connection.cookies.get(self._seal.name("visitor")))
        return Identity(f"visitor:{visitor['id'] if visitor else new_id()}")

    def remember(self, user: User, response: Response, connection: HTTPConnection) -> None:
        """Log somebody in: give the browser a cookie that says who they are."""
        content = {
            "identifier": user.identifier,
            "display_name": user.display_name,
            "metadata": user.metadata,
            "expires_at": time.time() + LOGIN_S,
        }
        self._set("login", content, response, connection)

    def remember_visitor(self, connection: HTTPConnection, response: Response) -> None:
        """Give a browser that nobody knows a cookie, where browsers are to be told apart."""
        is_needed = self._is_shared and not self._calling.app.needs_login
        if is_needed and self._seal.open(connection.cookies.get(self._seal.name("visitor"))) is None:
            self._set("visitor", {"id": new_id()}, response, connection)

    def forget(self, response: Response) -> None:
        """Log out."""
        response.delete_cookie(self._seal.name("login"), path="/")

    def _set(self, kind: str, content: dict[str, Any], response: Response, connection: HTTPConnection) -> None:
        is_secure = connection.url.scheme in ("https", "wss")
        # A page within another site's page keeps its cookie only so; it needs HTTPS.
        is_framed = bool(self._calling.app.allowed_origins) and is_secure
        response.set_cookie(
            self._seal.name(kind),
            self._seal.close(content),
            max_age=int(LOGIN_S),
            httponly=True,
            secure=is_secure,
            samesite="none" if is_framed else "lax",
            path="/",
        )

    def _by_cookie(self, connection: HTTPConnection) -> User | None:
        content = self._seal.open(connection.cookies.get(self._seal.name("login")))
        if content is None or content["expires_at"] < time.time():
            return None
        return User(content["identifier"], content["display_name"], content["metadata"])

    async def _by_headers(self, connection: HTTPConnection) -> User | None:
        if not self._calling.has("header_auth_callback"):
            return None
        asking = self._calling.loop.submit(self._calling.call("header_auth_callback", connection.headers))
        user: User | None = await asyncio.wrap_future(asking)
        return user
