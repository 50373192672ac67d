"""An application on a port, from the first connection to the last: opens it, tells where, and ends in order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from kaiwa.errors import InvalidOption
from kaiwa.server.settings import ServerSettings

BACKLOG = 2048
KEEP_ALIVE_S = 65
"""How long an idle connection is kept; longer than the minute after which proxies let go of theirs."""
GRACE_S = 1.0
"""What is left for last words when the time for draining is over."""


class Running(uvicorn.Server):
    """A server that listens already.

    `await serve()` answers until `should_exit` is set or a signal comes. SIGTERM and SIGINT let the answers under way
    come to their end, for `drain_s` at most; a second SIGINT ends them at once.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._socket = _listen(settings.host, settings.port)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            )
        )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        with self._socket:
            await super().serve([self._socket])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but that a signal which was obeyed does not end the process again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        [family, *_], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidOption(
            f"the server cannot listen on {host}, port {port}: {_reason(error)}",
            hint="choose another with --port, or stop what listens there",
        ) from None
    listening.setblocking(False)
    return listening


def _reason(error: OSError) -> str:
    """The system's own words, without those that Python adds of where it was."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror or error)
