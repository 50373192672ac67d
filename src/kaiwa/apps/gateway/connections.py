"""Connections: WebSockets, and server-sent events with commands by POST. Each is a page, by the id that it made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from kaiwa.apps.desk import Desk
from kaiwa.apps.gateway.body import read_body
from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.ids import new_id
from kaiwa.apps.page import Identity, Page
from kaiwa.apps.pages import Pages
from kaiwa.apps.protocol.commands import COMMAND, MAX_TEXT_CHARS
from kaiwa.apps.protocol.frames import Rejected
from kaiwa.apps.protocol.records import Problem
from kaiwa.apps.storage.database import Database
from kaiwa.errors import Refused

MAX_COMMAND_BYTES = 6 * MAX_TEXT_CHARS + 100_000
"""Of JSON in which every character may be escaped."""
_PING_S = 15.0
_GOING_AWAY, _POLICY, _TRY_AGAIN = 1001, 1008, 1013


class Connections:
    """The connections of one app."""

    def __init__(self, desk: Desk, pages: Pages, identities: Identities, database: Database) -> None:
        self._desk = desk
        self._pages = pages
        self._identities = identities
        self._database = database
        self._by_id: dict[tuple[str, str], Page] = {}
        self.is_closing = asyncio.Event()

    async def socket(self, socket: WebSocket) -> None:
        """`WS api/socket`: commands come in, frames go out, until one of the two ends."""
        identity = await self._identities.of(socket)
        if identity is None:
            await socket.close(_POLICY, "log in first")
            return
        await socket.accept()
        page = self._arrive(identity, socket.query_params.get("connection"))
        sending = asyncio.create_task(self._send_frames(socket, page))
        try:
            async for text in socket.iter_text():
                await self.obey(page, text)
        except WebSocketDisconnect:
            pass
        finally:
            self._leave(page)
            sending.cancel()
            await asyncio.wait([sending])

    async def events(self, request: Request) -> Response:
        """`GET api/events`: frames as server-sent events."""
        identity = await self._known(request)
        page = self._arrive(identity, request.query_params.get("connection"))
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._server_sent(page), media_type="text/event-stream", headers=headers)

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

    def _arrive(self, identity: Identity, connection_id: str | None) -> Page:
        page = Page(identity, self._database, connection_id=connection_id or new_id())
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

    async def _send_frames(self, socket: WebSocket, page: Page) -> None:
        try:
            while not page.is_overrun:
                for text in await page.next_frames():
                    await socket.send_text(text)
            await socket.close(_TRY_AGAIN, "too slow: connect again")
        except (WebSocketDisconnect, RuntimeError):
            pass  # it has gone, and the reading side sees that too

    async def _server_sent(self, page: Page) -> AsyncIterator[str]:
        try:
            yield ": connected\n\n"
            while not page.is_overrun and not self.is_closing.is_set():
                try:
                    frames = await asyncio.wait_for(page.next_frames(), _PING_S)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                for text in frames:
                    yield f"data: {text}\n\n"
        finally:
            self._leave(page)
