"""Connections: WebSockets, and server-sent events with commands by POST. Each is a page, by the id that it made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from pydantic import ValidationError
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from kaiwa.apps.gateway.body import read_body
from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.protocol.commands import COMMAND, MAX_TEXT_CHARS
from kaiwa.apps.protocol.frames import Rejected
from kaiwa.apps.protocol.records import Problem
from kaiwa.apps.storage.database import Database
from kaiwa.apps.work.desk import Desk
from kaiwa.apps.work.ids import new_id
from kaiwa.apps.work.page import Identity, Page
from kaiwa.apps.work.pages import Pages
from kaiwa.errors import Refused, StorageFailed

MAX_COMMAND_BYTES = 6 * MAX_TEXT_CHARS + 100_000
"""Of JSON in which every character may be escaped."""
_PING_S = 15.0
_logger = logging.getLogger("kaiwa.apps")
_POLICY, _TRY_AGAIN = 1008, 1013


class Connections:
    """The connections of one app."""

    def __init__(self, desk: Desk, pages: Pages, identities: Identities, database: Database) -> None:
        self._desk = desk
        self._pages = pages
        self._identities = identities
        self._database = database
        self._by_id: dict[tuple[str, str], Page] = {}
        self.is_closing = asyncio.Event()

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`WS api/socket`: commands come in, frames go out, until one of the two ends.

        Plain ASGI, without a framework's layers around it: thousands of these wait for something to happen.
        """
        connection = HTTPConnection(scope)
        await receive()  # that it connects
        identity = await self._identities.of(connection)
        if identity is None:
            await send({"type": "websocket.close", "code": _POLICY, "reason": "log in first"})
            return
        await send({"type": "websocket.accept"})
        sender = Sender(send)
        page = self._arrive(identity, connection.query_params.get("connection"), sender.wake)
        sender.page = page
        del connection
        scope["headers"] = []  # nobody asks for them again, and they are most of what a socket holds
        try:
            while (message := await receive())["type"] == "websocket.receive":
                await self.obey(page, message.get("text") or "")
        finally:
            self._leave(page)
            await sender.stop()

    async def events(self, request: Request) -> Response:
        """`GET api/events`: frames as server-sent events."""
        identity = await self._known(request)
        woken = asyncio.Event()
        page = self._arrive(identity, request.query_params.get("connection"), woken.set)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._server_sent(page, woken), media_type="text/event-stream", headers=headers)

    async def command(self, request: Request) -> Response:
        """`POST api/commands`: one command of a page that is connected; what comes of it is sent as frames."""
        identity = await self._known(request)
        page = self._by_id.get((identity.owner, request.query_params.get("connection", "")))
        if page is None:
            raise Refused("not_found", "there is no such connection any more", hint="connect again")
        body = await read_body(request, max_bytes=MAX_COMMAND_BYTES)
        await self.obey(page, body.decode("utf-8", errors="replace"))
        return Response(status_code=202)

    async def obey(self, page: Page, text: str) -> None:
        """Read a command and see to it."""
        try:
            command = COMMAND.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            page.send(Rejected(id=None, problem=Problem(code="invalid", message=f"{where}: {first['msg']}")))
            return
        await self._desk.handle(page, command)

    def _arrive(self, identity: Identity, connection_id: str | None, wake: Callable[[], None]) -> Page:
        page = Page(identity, self._database, wake=wake, connection_id=connection_id or new_id())
        self._by_id[identity.owner, page.connection_id] = page
        self._pages.add(page)
        return page

    def _leave(self, page: Page) -> None:
        self._pages.remove(page)
        key = (page.identity.owner, page.connection_id)
        if self._by_id.get(key) is page:
            del self._by_id[key]

    async def _known(self, request: Request) -> Identity:
        identity = await self._identities.of(request)
        if identity is None:
            raise Refused("login", "nobody is logged in", hint="log in first")
        return identity

    async def _server_sent(self, page: Page, woken: asyncio.Event) -> AsyncIterator[str]:
        try:
            yield ": connected\n\n"
            while not page.is_overrun and not self.is_closing.is_set():
                try:
                    await asyncio.wait_for(woken.wait(), _PING_S)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                woken.clear()
                for text in await page.take():
                    yield f"data: {text}\n\n"
        finally:
            self._leave(page)


class Sender:
    """Sends a page's frames over its socket: a task while there are any, and nothing while there are none."""

    page: Page

    def __init__(self, send: Send) -> None:
        self._send = send
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There may be something to send."""
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Send no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        try:
            # Whoever wakes it meanwhile has changed what `take` gives.
            while frames := await self.page.take():
                for text in frames:
                    await self._send({"type": "websocket.send", "text": text})
                if self.page.is_overrun:
                    await self._send({"type": "websocket.close", "code": _TRY_AGAIN, "reason": "too slow"})
                    return
        except OSError:
            pass  # it has gone, and the reading side sees that too
        except StorageFailed as error:
            _logger.error("a page was sent away: %s", error)
            await self._send({"type": "websocket.close", "code": _TRY_AGAIN, "reason": "chats cannot be read"})
        finally:
            self._task = None
