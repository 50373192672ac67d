"""The outermost layer: every request has an id, ends with an answer in the right words, and leaves one line in the log.

The line holds nothing that people wrote: no body, no query, no message of an error.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kaiwa.server import errors
from kaiwa.server.errors import ApiError, ClientGone
from kaiwa.server.guard import let_read
from kaiwa.server.metrics import Counter

LOG = logging.getLogger("kaiwa.server")
CLIENT_GONE = 499
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class Access:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, requests: Counter) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self._app, scope, send)
        try:
            await exchange.run(receive)
        finally:
            self._requests.add(1, exchange.route, str(exchange.status))


class _Exchange:
    """One request and its response."""

    def __init__(self, app: ASGIApp, scope: Scope, send: Send) -> None:
        self._app = app
        self._scope = scope
        self._send = send
        self._started_s = time.perf_counter()
        self.status = 0
        self._code = ""
        given = Headers(scope=scope).get("x-request-id", "")
        self._id = given if _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        # A copy, because that of the scope is shared by all requests.
        scope["state"] = {**scope.get("state", {}), "request_id": self._id}

    @property
    def route(self) -> str:
        """The path of the endpoint that was asked, as it is in the table."""
        route: str = self._scope["state"].get("route", "none")
        return route

    async def run(self, receive: Receive) -> None:
        try:
            await self._app(self._scope, receive, self._put)
        except ClientGone:
            self._code = "client_gone"
            self.status = self.status or CLIENT_GONE
        except Exception as error:  # noqa: BLE001  (whatever it is, a client is told and the log says where)
            await self._fail(error)
        except asyncio.CancelledError:
            await self._fail(errors.SHUTTING_DOWN)
            raise
        finally:
            self._log()

    async def _put(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            headers["x-request-id"] = self._id
            if origin := self._scope["state"].get("origin"):
                let_read(origin, headers)
        await self._send(message)

    async def _fail(self, error: Exception) -> None:
        refusal = _of_http(error) if isinstance(error, HTTPException) else errors.of(error)
        self._code = refusal.code
        if refusal.status >= 500 and not isinstance(error, errors.EXPECTED):
            LOG.error("failed", extra={"fields": {"request_id": self._id, "where": _where(error)}})
        if self.status:
            return
        body = errors.body(refusal, self._scope["path"])
        headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._put({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await self._put({"type": "http.response.body", "body": body})

    def _log(self) -> None:
        fields = {
            "request_id": self._id,
            "method": self._scope["method"],
            "route": self.route,
            "status": self.status,
            "seconds": round(time.perf_counter() - self._started_s, 4),
            **({"code": self._code} if self._code else {}),
        }
        LOG.info("request", extra={"fields": fields})


def _of_http(error: HTTPException) -> ApiError:
    """What the router says of a path or method that it does not have."""
    if error.status_code == 404:
        return ApiError(404, "there is no such path here; /docs lists them", code="not_found")
    if error.status_code == 405:
        return ApiError(405, "the path does not take this method", code="method_not_allowed", headers=error.headers)
    return ApiError(error.status_code, str(error.detail), code="http_error", headers=error.headers)


def _where(error: Exception) -> str:
    """The kind of an error and the places it came through; its message may hold what people wrote."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " < ".join([type(error).__name__, *(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))])
