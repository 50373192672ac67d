"""Logging in and out over HTTP."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from kaiwa.apps.gateway import oauth
from kaiwa.apps.gateway.body import read_body
from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.protocol.http import AuthInfo, Login, LoginWay
from kaiwa.apps.user import User
from kaiwa.apps.work.calling import Calling
from kaiwa.errors import Refused

_MAX_BYTES = 10_000


class LoginDesk:
    """Answers `api/auth`, `api/login` and `api/logout`."""

    def __init__(self, calling: Calling, identities: Identities) -> None:
        self._calling = calling
        self._identities = identities

    async def info(self, request: Request) -> Response:
        """Who is logged in, and how one can."""
        identity = await self._identities.of(request)
        return self._answer(identity.user if identity else None)

    async def log_in(self, request: Request) -> Response:
        """Ask the app who this is."""
        if not self._calling.has("password_auth_callback"):
            raise Refused("not_found", "this app takes no passwords")
        try:
            login = Login.model_validate_json(await read_body(request, max_bytes=_MAX_BYTES))
        except ValidationError:
            raise Refused("invalid", "a login is a username and a password") from None
        call = self._calling.call("password_auth_callback", login.username, login.password)
        user: User | None = await asyncio.wrap_future(self._calling.loop.submit(call))
        if user is None:
            raise Refused("login", "nobody has this name and password")
        response = self._answer(user)
        self._identities.remember(user, response, request)
        return response

    async def log_out(self, request: Request) -> Response:
        """Forget who this is."""
        response = Response(status_code=204)
        self._identities.forget(response)
        call = self._calling.tell("on_logout", request, response)
        await asyncio.wrap_future(self._calling.loop.submit(call))
        return response

    def _answer(self, user: User | None) -> Response:
        app = self._calling.app
        ways = []
        if app.hooks.has("password_auth_callback"):
            ways.append(LoginWay(kind="password", id="password", name="Password"))
        if app.hooks.has("oauth_callback"):
            ways += [
                LoginWay(kind="oauth", id=provider.id, name=provider.name, url=f"api/oauth/{provider.id}")
                for provider in oauth.configured()
            ]
        shown = None if user is None else user.record()
        info = AuthInfo(is_required=app.needs_login, user=shown, ways=tuple(ways))
        return Response(info.model_dump_json(), media_type="application/json")
