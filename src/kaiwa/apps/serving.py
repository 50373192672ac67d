"""Serving an app: by which names it may be reached, who has to log in, and a server until somebody ends it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from kaiwa.apps.definition import Definition
from kaiwa.errors import InvalidApp

DEFAULT_PORT = 8000
MAX_SOCKETS = 65_536
_PING_S, _PING_TIMEOUT_S = 20.0, 60.0
_MAX_SOCKET_MESSAGE_BYTES = 32 * 1024 * 1024

_logger = logging.getLogger("kaiwa.apps")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve. `allow_anyone` lets people in without a login from other machines too."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    is_headless: bool = False
    allow_anyone: bool = False
    allowed_hosts: Sequence[str] = ()
    root_path: str = ""
    database_url: str | None = None
    watched: Path | None = None
    """A file whose code is read again when it changes."""


def check(app: Definition, settings: Settings) -> None:
    """Raise `InvalidApp` where the app would be open to everybody without anybody having said so."""
    if is_loopback(settings.host) or app.needs_login or settings.allow_anyone:
        return
    raise InvalidApp(
        f"on {settings.host}, everybody on the network could use this app and nobody has to log in",
        hint="register @password_auth_callback (or header_auth_callback, oauth_callback), pass --allow-anyone if you "
        "mean it, or leave --host out to stay on this machine",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(settings: Settings) -> socket.socket:
    """A socket at the address. Raises `InvalidApp` where it is taken, or cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InvalidApp(
            f"the address {settings.host}:{settings.port} cannot be used: {error.strerror or error}",
            hint=f"is another app running there? --port {settings.port + 1} chooses another one",
        ) from error
    return listener


def serve(app: Definition, folder: Path, settings: Settings, *, reload: Callable[[], Definition] | None = None) -> None:
    """Serve the app until the process is interrupted. `folder` is where its chats are kept.

    Raises `InvalidApp`, and `StorageFailed` where chats cannot be kept there.
    """
    check(app, settings)
    _allow_many_sockets()
    listener = listen(settings)
    try:
        asyncio.run(_serve(app, folder, settings, listener, reload))
    finally:
        listener.close()


def _allow_many_sockets() -> None:
    """Take as many files and sockets as the system allows: what it gives by itself is few on some machines."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_SOCKETS if hard == resource.RLIM_INFINITY else min(MAX_SOCKETS, hard)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(
    app: Definition, folder: Path, settings: Settings, listener: socket.socket, reload: Callable[[], Definition] | None
) -> None:
    import uvicorn

    from kaiwa.apps.gateway.asgi import Gateway
    from kaiwa.apps.gateway.loopback import LOOPBACK
    from kaiwa.apps.work.reloading import Watcher
    from kaiwa.apps.work.service import Service
    from kaiwa.runtime.process.model_process import in_child

    service = Service(app, folder, database_url=settings.database_url, load_model=in_child)
    is_local = is_loopback(settings.host)
    hosts = None
    if is_local or settings.allowed_hosts:
        hosts = {*LOOPBACK, settings.host, *settings.allowed_hosts}
    gateway = Gateway(service, folder, hosts=hosts, is_shared=not is_local, owns_service=True)
    config = uvicorn.Config(
        gateway,
        log_config=None,
        access_log=False,
        root_path=settings.root_path,
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # a compressor's memory for each page, to save nothing on loopback
        ws_ping_interval=_PING_S,
        ws_ping_timeout=_PING_TIMEOUT_S,
        ws_max_size=_MAX_SOCKET_MESSAGE_BYTES,
        timeout_graceful_shutdown=3,
        server_header=False,
        lifespan="off",  # `open` does that, and its errors are ours to tell
    )
    with ExitStack() as stack:
        if reload is not None and settings.watched is not None:
            stack.enter_context(closing(Watcher(settings.watched, reload, service)))
        async with gateway.open():
            _announce(app, settings, listener, is_built=gateway.page_files.is_built)
            await uvicorn.Server(config).serve([listener])


def _announce(app: Definition, settings: Settings, listener: socket.socket, *, is_built: bool) -> None:
    port = listener.getsockname()[1]
    name = "localhost" if is_loopback(settings.host) else settings.host
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}{settings.root_path}/"
    print(f"{app.name} is at {url}", file=sys.stderr, flush=True)
    if not is_built:
        print("The page is not built: see web/. Everything else works.", file=sys.stderr, flush=True)
    if not settings.is_headless and is_built:
        webbrowser.open(url)
