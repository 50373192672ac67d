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
MAX_UNSENT = 256
"""Pieces that may wait for a client that reads slowly, before the answer has to."""


class EventStream(Response):
    """A response of pieces, each of which is one or more whole events; those that are there at once go out at once.

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
        self._unsent: list[bytes] = []
        self._is_there = asyncio.Event()
        """Set where there is something to send, or nothing comes any more."""
        self._is_sent = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        try:
            await while_connected(receive, self._write())
        except asyncio.CancelledError:
            if self._has_begun:
                await self._put(self._tell(errors.SHUTTING_DOWN), is_last=True)
            raise

    async def _write(self) -> None:
        gathering = asyncio.ensure_future(self._gather())
        gathering.add_done_callback(lambda _: self._is_there.set())
        try:
            while self._unsent or not gathering.done():
                if burst := await self._next_burst():
                    await self._put(burst)
            await gathering
        except Exception as error:
            if not self._has_begun:
                raise
            await self._put(self._tell(errors.of(error)), is_last=True)
            if not isinstance(error, errors.EXPECTED):
                raise
        else:
            await self._put(b"", is_last=True)
        finally:
            gathering.cancel()
            await asyncio.gather(gathering, return_exceptions=True)

    async def _gather(self) -> None:
        """A task of its own, because a piece may be there before the one before it is sent."""
        async with aclosing(self._pieces) as pieces:
            async for piece in pieces:
                self._unsent.append(piece)
                self._is_there.set()
                if len(self._unsent) == MAX_UNSENT:
                    self._is_sent.clear()
                    await self._is_sent.wait()

    async def _next_burst(self) -> bytes:
        """All pieces that are there, or a comment where none comes for long; nothing at the end."""
        try:
            async with asyncio.timeout(self._comment_every_s):
                await self._is_there.wait()
        except TimeoutError:
            return COMMENT
        burst = b"".join(self._unsent)
        self._unsent.clear()
        self._is_there.clear()
        self._is_sent.set()
        return burst

    async def _put(self, piece: bytes, *, is_last: bool = False) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._send({"type": "http.response.body", "body": piece, "more_body": not is_last})


def event(data: str) -> bytes:
    """One event without a name."""
    return f"data: {data}\n\n".encode()


def named_event(name: str, data: str) -> bytes:
    """One event with a name."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def openai_event(error: ApiError) -> bytes:
    """What goes wrong in the middle of a stream, in OpenAI's words."""
    return event(dumps({"error": errors.openai_object(error)}))
