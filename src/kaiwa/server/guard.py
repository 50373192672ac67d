"""Who may come in: the right host name, no foreign web page, and the key where there is one."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from kaiwa.server.errors import ApiError
from kaiwa.server.settings import ServerSettings, is_loopback

OPEN_PATHS = frozenset({"/health", "/docs", "/openapi.json"})
"""What needs no key: whether the server is up, and what it is."""

_ALLOWED_HEADERS = "authorization, content-type, x-api-key, x-request-id, anthropic-version, anthropic-beta"


class Guard:
    """ASGI middleware that lets a request through or raises `ApiError`.

    It leaves the request's `client` in the scope's state, and the `origin` of the page that may read the response.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._keys = [hashlib.sha256(key.encode()).digest() for key in settings.api_keys]
        self._hosts = {"localhost", *(host.lower() for host in settings.allowed_hosts)}
        if not is_loopback(settings.host):
            self._hosts |= {settings.host.lower(), socket.gethostname().lower()}
        self._origins = {origin.lower() for origin in settings.allowed_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_host(headers)
        origin = headers.get("origin")
        if origin is None:
            scope["state"]["client"] = self._client(scope["path"], headers)
            await self._app(scope, receive, send)
            return
        if self._is_foreign(origin, headers):
            raise ApiError(
                403,
                f"web pages of {origin[:200]!r} may not call this server (--allow-origin lets them)",
                code="origin_not_allowed",
            )
        scope["state"]["origin"] = origin
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _answer_preflight(send)
            return
        scope["state"]["client"] = self._client(scope["path"], headers)
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """A page that points its own name at this machine is told apart by that name."""
        values = headers.getlist("host")
        host = _host_of(values[0]) if len(values) == 1 else ""
        if host in self._hosts or _is_address(host, any_=not is_loopback(self._settings.host)):
            return
        raise ApiError(
            403, f"this server is not called {host[:200]!r} (--allow-host gives it a name)", code="host_not_allowed"
        )

    def _is_foreign(self, origin: str, headers: Headers) -> bool:
        own = {f"{scheme}://{headers.get('host', '')}".lower() for scheme in ("http", "https")}
        return origin.lower() not in own | self._origins

    def _client(self, path: str, headers: Headers) -> str:
        """The scope that a request's key opens: its prefix cache, its share of the engine."""
        if not self._keys or path in OPEN_PATHS:
            return ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        digest = hashlib.sha256(given.encode()).digest()
        # All are compared, and whole, so that the time says nothing of which one is nearly right.
        matches = [hmac.compare_digest(digest, key) for key in self._keys]
        if True not in matches:
            problem = "that API key does not open this server" if given else "this server wants an API key"
            raise ApiError(
                401,
                f"{problem}: send 'Authorization: Bearer KEY'",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return digest.hex()[:16]


def _host_of(value: str) -> str:
    """The name without the port."""
    if value.startswith("["):
        return value[1:].partition("]")[0].lower()
    name, _, port = value.rpartition(":")
    return (name if port.isdecimal() and name else value).lower()


def _is_address(host: str, *, any_: bool) -> bool:
    """Whether that is a number of this machine, or of `any_`: no page can pretend to be at a number."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any_ or address.is_loopback


def let_read(origin: str, headers: MutableHeaders) -> None:
    """Say in a response that pages of that origin may read it."""
    headers["access-control-allow-origin"] = origin
    headers["access-control-expose-headers"] = "x-request-id, retry-after"
    headers.add_vary_header("origin")


async def _answer_preflight(send: Send) -> None:
    headers = {
        b"access-control-allow-methods": b"GET, POST, DELETE",
        b"access-control-allow-headers": _ALLOWED_HEADERS.encode(),
        b"access-control-max-age": b"600",
    }
    await send({"type": "http.response.start", "status": 204, "headers": list(headers.items())})
    await send({"type": "http.response.body"})
