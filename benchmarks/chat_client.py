"""A page of either framework, as light as it can be. Run by `apps.py` in an environment that has what it needs.

python chat_client.py kaiwa 8000 stream 20000    # one answer of so many tokens: seconds until the last one
python chat_client.py kaiwa 8000 idle 200        # so many open chats, until standard input ends
python chat_client.py kaiwa 8000 return 300      # loses the connection in the middle, and comes back
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from typing import Any, Protocol

AT_ONCE = 50
"""So many pages come together."""


class Page(Protocol):
    """One connection to an app."""

    async def open(self, port: int) -> None: ...

    async def say(self, text: str) -> None: ...

    async def answer(self) -> str:
        """The whole answer, when it is there."""
        ...


class KaiwaPage:
    """Speaks Kaiwa's protocol over a WebSocket."""

    def __init__(self, *, chat_id: str = "") -> None:
        self.chat_id = chat_id or uuid.uuid4().hex
        self.is_new = not chat_id
        self.offset = 0
        self.is_over = False
        self.text = ""

    async def open(self, port: int) -> None:
        from websockets.asyncio.client import connect

        self._connecting = connect(f"ws://127.0.0.1:{port}/api/socket", compression=None, max_size=None)
        self.socket = await self._connecting.__aenter__()
        await self._send("hello", version=1)
        if self.is_new:
            await self._send("new_chat", chat_id=self.chat_id)
            await self._until(lambda frame: frame["type"] == "opened")

    async def open_again(self, since: int) -> None:
        await self._send("open_chat", chat_id=self.chat_id, since=since)

    async def say(self, text: str) -> None:
        await self._send("say", chat_id=self.chat_id, message_id=uuid.uuid4().hex, text=text)

    async def answer(self) -> str:
        await self._until(self._is_last)
        return self.text

    async def some(self, num_chars: int) -> None:
        """Read until this much of the answer is there."""
        await self._until(lambda frame: self._is_last(frame) or len(self.text) > num_chars)

    async def cut(self) -> None:
        self.socket.transport.abort()

    async def _send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, "id": uuid.uuid4().hex, **fields}))

    async def _until(self, is_it: Any) -> None:
        async for text in self.socket:
            if is_it(json.loads(text)):
                return

    def _is_last(self, frame: dict[str, Any]) -> bool:
        if frame["type"] != "events":
            return False
        self.offset = frame["offset"]
        for event in frame["events"]:
            if event["type"] == "text_added":
                self.text += event["text"]
        self.is_over = any(event["type"] == "run_finished" for event in frame["events"])
        return self.is_over


class ChainlitPage:
    """Speaks Chainlit's, over socket.io."""

    def __init__(self) -> None:
        import socketio

        self.io = socketio.AsyncClient()
        self.text = ""
        self.is_done = asyncio.Event()
        self.io.on("stream_token", self._token)
        self.io.on("task_end", self._end)
        self.is_running = False

    async def open(self, port: int) -> None:
        auth = {
            "clientType": "webapp",
            "sessionId": str(uuid.uuid4()),
            "threadId": "",
            "userEnv": "{}",
            "chatProfile": "",
        }
        url = f"http://127.0.0.1:{port}"
        await self.io.connect(url, auth=auth, socketio_path="/ws/socket.io", transports=["websocket"])
        await self.io.emit("connection_successful")

    async def say(self, text: str) -> None:
        self.is_running = True
        message = {"id": str(uuid.uuid4()), "threadId": "", "name": "user", "type": "user_message", "output": text}
        created_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        await self.io.emit("client_message", {"message": {**message, "createdAt": created_at}, "fileReferences": []})

    async def answer(self) -> str:
        await self.is_done.wait()
        return self.text

    async def _token(self, data: dict[str, Any]) -> None:
        self.text += data["token"]

    async def _end(self, *data: Any) -> None:
        if self.is_running and self.text:
            self.is_done.set()


def make(framework: str) -> Page:
    """A page of this framework."""
    return KaiwaPage() if framework == "kaiwa" else ChainlitPage()


async def stream(framework: str, port: int, num_tokens: int) -> dict[str, float]:
    """One answer, and how long it took."""
    page = make(framework)
    await page.open(port)
    began_at = time.perf_counter()
    await page.say(str(num_tokens))
    text = await page.answer()
    return {"seconds": time.perf_counter() - began_at, "num_words": len(text.split())}


async def idle(framework: str, port: int, num_chats: int) -> dict[str, float]:
    """Open chats, tell that they are there, and stay until nobody wants them any more."""
    pages = [make(framework) for _ in range(num_chats)]
    for first in range(0, num_chats, AT_ONCE):
        await asyncio.gather(*(page.open(port) for page in pages[first : first + AT_ONCE]))
    print(json.dumps({"num_chats": len(pages)}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    return {}


async def come_back(framework: str, port: int, num_tokens: int) -> dict[str, float]:
    """Lose the connection in the middle of an answer; how long until all is there that was missed, and what is lost."""
    page = KaiwaPage()
    await page.open(port)
    await page.say(f"{num_tokens}:0.002")
    await page.some(500)
    await page.cut()
    await asyncio.sleep(0.5)
    again = KaiwaPage(chat_id=page.chat_id)
    began_at = time.perf_counter()
    await again.open(port)
    await again.open_again(page.offset)
    await again.some(0)
    caught_up_s = time.perf_counter() - began_at
    if not again.is_over:
        await again.answer()
    return {"caught_up_s": caught_up_s, "num_words": len((page.text + again.text).split())}


TASKS = {"stream": stream, "idle": idle, "return": come_back}

if __name__ == "__main__":
    framework, port, task, number = sys.argv[1:]
    print(json.dumps(asyncio.run(TASKS[task](framework, int(port), int(number)))), flush=True)
