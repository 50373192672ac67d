"""The guard: which hosts and origins may speak to an app, and which headers keep a browser safe with its answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kaiwa.apps.gateway.problems import problem_response
from kaiwa.errors import Refused

_SAFE = ("GET", "HEAD", "OPTIONS")


def content_security_policy(*, sources: Iterable[str] = (), ancestors: Iterable[str] = ()) -> str:
    """What a page may load, and who may frame it: nothing from elsewhere, unless the app says so."""
    media = " ".join(("'self'", "data:", "blob:", *sources))
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src {media}",
            f"media-src {media}",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self'",
            "manifest-src 'self'",
            "frame-src 'self'",
            "base-uri 'self'",
            "form-action 'self'",
            "require-trusted-types-for 'script'",  # no text becomes HTML, whoever forgets himself
            f"frame-ancestors {' '.join(ancestors) or chr(39) + 'none' + chr(39)}",
        )
    )


class Guard:
    """A layer around an app. Without `hosts`, any name may lead to it; `origins` are foreign sites that may speak."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] | None, origins: Collection[str], policy: str) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        problem = self._problem(HTTPConnection(scope))
        if problem is None:
            await self._app(scope, receive, send if scope["type"] == "websocket" else self._with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": str(problem)[:100]})
        else:
            await problem_response(problem, 403)(scope, receive, send)

    def _problem(self, connection: HTTPConnection) -> Refused | None:
        headers = connection.headers
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if self._hosts is not None and host not in self._hosts:
            return Refused(
                "foreign_host",
                f"this app is not to be reached as {host!r}",
                hint=f"use {' or '.join(sorted(self._hosts))}, or allow the name with --allow-host",
            )
        is_safe = connection.scope["type"] == "http" and connection.scope["method"] in _SAFE
        origin = headers.get("origin")
        if origin is None or is_safe or self._is_own(origin, headers) or origin.lower() in self._origins:
            return None
        return Refused("foreign_origin", f"a page of {origin} must not speak to this app")

    def _is_own(self, origin: str, headers: Headers) -> bool:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""

    def _with_headers(self, send: Send) -> Send:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", self._policy)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return send_safely
