"""An app within another ASGI program, which may not tell it when anything begins or ends."""

from __future__ import annotations

import asyncio
import atexit
import re
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from starlette.types import Receive, Scope, Send

from kaiwa import paths
from kaiwa.apps.definition import Definition
from kaiwa.apps.gateway.asgi import Gateway
from kaiwa.apps.work.service import Service


class Mounted:
    """Begins with the first request, and ends with the process, unless `lifespan` says otherwise."""

    def __init__(self, app: Definition, *, folder: Path | None, hosts: Collection[str] | None) -> None:
        self._app = app
        self._folder = folder or paths.apps() / (re.sub(r"[^a-z0-9]+", "-", app.name.lower()).strip("-") or "app")
        self._hosts = hosts
        self._gateway: Gateway | None = None
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        gateway = await self._open()
        await gateway(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, program: object = None) -> AsyncIterator[None]:
        """For the lifespan of the program around it: `FastAPI(lifespan=mounted.lifespan)`."""
        await self._open()
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """End the app; the next request would begin it again."""
        await self._stack.aclose()
        self._gateway = None

    async def _open(self) -> Gateway:
        async with self._opening:
            if self._gateway is None:
                service = await asyncio.to_thread(Service, self._app, self._folder)
                atexit.register(service.close)
                self._stack.callback(atexit.unregister, service.close)
                self._stack.push_async_callback(asyncio.to_thread, service.close)
                gateway = Gateway(service, self._folder, hosts=self._hosts)
                await self._stack.enter_async_context(gateway.open())
                self._gateway = gateway
            return self._gateway

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan where nothing is around it."""
        await receive()
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
