"""An app within somebody else's program."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from websockets.sync.client import connect

import kaiwa as kw
from app_wire import PATIENCE_S, http
from kaiwa.apps.serving import Settings, listen


@contextmanager
def running(program: object, *, lifespan: str) -> Iterator[int]:
    listener = listen(Settings(port=0))
    config = uvicorn.Config(program, log_config=None, lifespan=lifespan, ws="websockets-sansio")  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def parrot(name: str) -> kw.App:
    app = kw.App(name)

    @app.on_message
    async def answer(message: kw.Message) -> None:
        await kw.Message(f"{name}: {message.content}").send()

    return app


def ask(port: int, path: str) -> str:
    with connect(f"ws://127.0.0.1:{port}{path}/api/socket", compression=None) as socket:
        for command in (
            {"type": "hello", "version": 1},
            {"type": "new_chat", "chat_id": "c"},
            {"type": "say", "chat_id": "c", "message_id": "m", "text": "hi"},
        ):
            socket.send(json.dumps({"id": "x", **command}))
        while True:
            frame = json.loads(socket.recv(timeout=PATIENCE_S))
            for event in frame.get("events", ()):
                if event["type"] == "message_added" and event["message"]["role"] == "assistant":
                    return str(event["message"]["parts"][0]["text"])


def test_two_apps_in_one_program(tmp_path: Path) -> None:
    one, two = (parrot(name).asgi(folder=tmp_path / name) for name in ("one", "two"))

    async def own(request: object) -> PlainTextResponse:
        return PlainTextResponse("mine")

    @asynccontextmanager
    async def lifespan(program: object) -> AsyncIterator[None]:
        async with one.lifespan(), two.lifespan():
            yield

    routes = [Route("/v1/models", own), Mount("/chats/one", one), Mount("/chats/two", two)]
    with running(Starlette(routes=routes, lifespan=lifespan), lifespan="on") as port, http(port) as client:
        assert client.get("/v1/models").text == "mine", "an app shadows nothing around it"
        assert client.get("/chats/one/api/health").json() == {"status": "ok"}
        assert ask(port, "/chats/one") == "one: hi"
        assert ask(port, "/chats/two") == "two: hi"


def test_an_app_begins_by_itself_where_nobody_tells_it_to(tmp_path: Path) -> None:
    app = parrot("late").asgi(folder=tmp_path)
    with running(Starlette(routes=[Mount("/chat", app)]), lifespan="off") as port:
        assert ask(port, "/chat") == "late: hi"
    asyncio.run(app.close())


def test_an_app_alone_under_any_server(tmp_path: Path) -> None:
    with running(parrot("alone").asgi(folder=tmp_path), lifespan="on") as port:
        assert ask(port, "") == "alone: hi"
