"""An app as an ASGI program: to be served alone, or mounted into another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kaiwa.apps.gateway.connections import Connections
from kaiwa.apps.gateway.cookies import Seal
from kaiwa.apps.gateway.files import FileDesk
from kaiwa.apps.gateway.guard import Guard, content_security_policy
from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.gateway.login import LoginDesk
from kaiwa.apps.gateway.loopback import LOOPBACK
from kaiwa.apps.gateway.oauth import OAuthDesk
from kaiwa.apps.gateway.page_files import PageFiles
from kaiwa.apps.gateway.problems import on_error
from kaiwa.apps.work.desk import Desk
from kaiwa.apps.work.pages import Pages
from kaiwa.apps.work.service import Service
from kaiwa.errors import KaiwaError, Refused


class Gateway:
    """Serves one service.

    `hosts` are the names by which it may be reached; None is any. Where `is_shared`, browsers are told apart even
    where nobody has to log in.
    """

    def __init__(
        self,
        service: Service,
        folder: Path,
        *,
        hosts: Collection[str] | None = LOOPBACK,
        is_shared: bool = False,
        owns_service: bool = False,
    ) -> None:
        self._service = service
        self._owns_service = owns_service
        seal = Seal(folder)
        self._identities = Identities(service.calling, seal, is_shared=is_shared)
        self.page_files = PageFiles(self._identities)
        self._login = LoginDesk(service.calling, self._identities)
        self._oauth = OAuthDesk(service.calling, self._identities, seal)
        self._files = FileDesk(service, self._identities)
        self._connections: Connections | None = None
        app = service.app
        policy = content_security_policy(sources=app.sources, ancestors=app.allowed_origins)
        self._starlette = self._make_starlette()
        self._app = Guard(self._dispatch, hosts=hosts, origins=app.allowed_origins, policy=policy)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Be ready for pages, for the length of an `async with`."""
        pages = Pages()
        self._service.attach(pages)
        desk = Desk(self._service, pages)
        self._connections = Connections(desk, pages, self._identities, self._service.database)
        try:
            await asyncio.to_thread(self._service.start)
            yield
        finally:
            self._connections.is_closing.set()
            self._service.detach(pages)
            if self._owns_service:
                await asyncio.to_thread(self._service.close)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] == "websocket" and path == "/api/socket":
            await self._open_connections().socket(scope, receive, send)
        else:
            await self._starlette(scope, receive, send)

    def _make_starlette(self) -> Starlette:
        async def events(request: Request) -> Response:
            return await self._open_connections().events(request)

        async def command(request: Request) -> Response:
            return await self._open_connections().command(request)

        routes = [
            Route("/api/health", _health),
            Route("/api/events", events),
            Route("/api/commands", command, methods=["POST"]),
            Route("/api/auth", self._login.info),
            Route("/api/login", self._login.log_in, methods=["POST"]),
            Route("/api/logout", self._login.log_out, methods=["POST"]),
            Route("/api/oauth/{provider}", self._oauth.begin),
            Route("/api/oauth/{provider}/callback", self._oauth.finish, name="oauth_callback"),
            Route("/api/files/{chat_id}/{file_id}", self._files.put, methods=["PUT"]),
            Route("/files/{file_id}", self._files.get),
            Route("/", self.page_files.index, name="index"),
            Route("/chat/{chat_id}", self.page_files.index),
            Route("/{name:path}", self.page_files.file),
        ]

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with self.open():
                yield

        return Starlette(routes=routes, lifespan=lifespan, exception_handlers={KaiwaError: on_error})

    def _open_connections(self) -> Connections:
        if self._connections is None:
            raise Refused("busy", "the app is not open yet", hint="let your program's lifespan run that of the app")
        return self._connections


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})
