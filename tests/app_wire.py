"""A page without a browser: a real WebSocket to a real server, and the state that its events make."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
import uvicorn
from websockets.sync.client import connect

from kaiwa.apps.definition import Definition
from kaiwa.apps.gateway.asgi import Gateway
from kaiwa.apps.gateway.loopback import LOOPBACK
from kaiwa.apps.protocol.events import EVENT
from kaiwa.apps.protocol.frames import PROTOCOL_VERSION
from kaiwa.apps.serving import Settings, listen
from kaiwa.apps.storage.catalog import text_of
from kaiwa.apps.work.chat_state import ChatState
from kaiwa.apps.work.service import Service

PATIENCE_S = 15.0


@contextmanager
def served(app: Definition, folder: Path, *, is_shared: bool = False) -> Iterator[int]:
    """The port of a server for this app, in a thread."""
    listener = listen(Settings(port=0))
    service = Service(app, folder)
    gateway = Gateway(service, folder, hosts=LOOPBACK, is_shared=is_shared, owns_service=True)
    server = uvicorn.Server(
        uvicorn.Config(gateway, log_config=None, lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=1)
    )
    is_open = threading.Event()

    async def run() -> None:
        async with gateway.open():
            is_open.set()
            await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert is_open.wait(PATIENCE_S)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def http(port: int, **options: Any) -> httpx2.Client:
    """Plain HTTP to that server."""
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, **options)


class Wire:
    """One connection. All that arrives is kept in `frames`; `state` is the chat `chat_id` as its events make it."""

    def __init__(self, port: int, *, headers: Mapping[str, str] | None = None) -> None:
        connecting = connect(
            f"ws://127.0.0.1:{port}/api/socket",
            additional_headers=dict(headers or {}),
            max_size=None,
            compression=None,
            open_timeout=PATIENCE_S,
        )
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(connecting)
        self.frames: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.state = ChatState()
        self.offset = 0
        self.chat_id = ""

    def hello(self) -> Self:
        """Begin, as every page does."""
        self.ask("hello", version=PROTOCOL_VERSION)
        return self

    def new_chat(self, **fields: Any) -> Self:
        """Begin a chat."""
        self.chat_id = uuid.uuid4().hex
        self.ask("new_chat", **fields)
        return self

    def open_chat(self, chat_id: str, *, since: int = 0) -> Self:
        """Follow a chat."""
        self.chat_id = chat_id
        self.ask("open_chat", since=since)
        return self

    def say(self, text: str, **fields: Any) -> None:
        """Say something."""
        self.ask("say", text=text, **{"message_id": uuid.uuid4().hex, **fields})

    def ask(self, type: str, **fields: Any) -> dict[str, Any]:
        """Send a command; the answer to it."""
        command_id = self.send(type, **fields)
        self.until(lambda: self._answer(command_id))
        return self._answer(command_id) or {}

    def send(self, type: str, **fields: Any) -> str:
        """Send a command, and don't wait; its id."""
        command_id = uuid.uuid4().hex
        chat = {} if type in ("hello", "list_chats") else {"chat_id": self.chat_id}
        self._socket.send(json.dumps({"type": type, "id": command_id, **chat, **fields}))
        return command_id

    def until(self, is_true: Callable[[], object]) -> None:
        """Receive until this is true."""
        while not is_true():
            self._take(json.loads(self._socket.recv(timeout=PATIENCE_S)))

    def until_idle(self, num_runs: int = 1) -> None:
        """Receive until so many runs have ended."""
        self.until(lambda: len(self.of("run_finished")) >= num_runs)

    def of(self, type: str) -> list[dict[str, Any]]:
        """The events of one type, so far."""
        return [event for event in self.events if event["type"] == type]

    @property
    def texts(self) -> list[str]:
        """What all messages say."""
        return [text_of(message) for message in self.state.messages.values()]

    def cut(self) -> None:
        """Lose the connection, without a word."""
        with contextlib.suppress(OSError):
            self._socket.socket.close()
        self._stack.close()

    def close(self) -> None:
        """Leave."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answer(self, command_id: str) -> dict[str, Any] | None:
        answers = (frame for frame in self.frames if frame["type"] in ("accepted", "rejected"))
        return next((frame for frame in answers if frame["id"] == command_id), None)

    def _take(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        if frame["type"] == "opened" and frame["since"] == 0:
            self.state = ChatState()  # as a page forgets what it drew
        if frame["type"] == "events" and frame["chat_id"] == self.chat_id:
            self.offset = frame["offset"]
            self.events += frame["events"]
            for event in frame["events"]:
                self.state.apply(EVENT.validate_python(event))
