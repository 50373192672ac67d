"""Server-sent events: an answer while it is written, over a connection that must neither fall asleep nor lie."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kaiwa.server import errors
from kaiwa.server.connection import while_connected
from kaiwa.server.errors import ApiError
from kaiwa.server.json_text import dumps

DONE = b"data: [DONE]\n\n"
COMMENT = b": still at work\n\n"


class EventStream(Response):
    """A response of pieces, each of which is one or more whole events.

    The head is sent with the first piece, so that what goes wrong before it has an HTTP status of its own. After
    `comment_every_s` without a piece a comment is sent instead. What goes wrong later is told as an event, which
    `tell` makes of the error.
    """

    media_type = "text/event-stream"

    def __init__(
        self, pieces: AsyncGenerator[bytes], tell: Callable[[ApiError], bytes], *, comment_every_s: float
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        # The length is not known, and a server that compresses or keeps pieces back would undo the streaming.
        del self.headers["content-length"]
        self._pieces = pieces
        self._tell = tell
        self._comment_every_s = comment_every_s
        self._has_begun = False
        self._sending = asyncio.Lock()
        self._sent_s = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        try:
            await while_connected(receive, self._write())
        except asyncio.CancelledError:
            if self._has_begun:
                await self._end(self._tell(errors.SHUTTING_DOWN))
            raise

    async def _write(self) -> None:
        beating = asyncio.ensure_future(self._beat())
        try:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    await self._put(piece)
        except Exception as error:
            if not self._has_begun:
                raise
            await self._end(self._tell(errors.of(error)))
            if not isinstance(error, errors.EXPECTED):
                raise
        else:
            await self._end(b"")
        finally:
            beating.cancel()

    async def _put(self, piece: bytes) -> None:
        self._sent_s = asyncio.get_running_loop().time()
        async with self._sending:
            if not self._has_begun:
                self._has_begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _end(self, piece: bytes) -> None:
        async with self._sending:
            if not self._has_begun:
                self._has_begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send({"type": "http.response.body", "body": piece, "more_body": False})

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._sent_s = loop.time()
        while True:
            await asyncio.sleep(self._sent_s + self._comment_every_s - loop.time())
            if loop.time() - self._sent_s >= self._comment_every_s:
                await self._put(COMMENT)


def event(data: str) -> bytes:
    """One event without a name."""
    return f"data: {data}\n\n".encode()


def named_event(name: str, data: str) -> bytes:
    """One event with a name."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def openai_event(error: ApiError) -> bytes:
    """What goes wrong in the middle of a stream, in OpenAI's words."""
    return event(dumps({"error": errors.openai_object(error)}))
