"""A server on this machine that speaks OpenAI's API as a test tells it to, over real connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Said:
    """One answer: a status with headers and a JSON body, or chunks of a stream, each written by itself.

    Of a stream, `cut` ends the connection without its end, and `pause` waits for that event before the last chunk.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    chunks: Sequence[Any] = ()
    cut: bool = False
    pause: threading.Event | None = None


def text_chunks(*pieces: str, finish: str = "stop", usage: dict[str, Any] | None = None) -> list[Any]:
    """The chunks of an answer of these pieces."""
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    chunks += [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        chunks.append({"choices": [], "usage": usage})
    return [*chunks, "[DONE]"]


@dataclass
class OpenAIServer:
    """Answers with `script`, one after the other, and repeats the last."""

    script: list[Said] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "tiny", "max_model_len": 2048}])
    key: str = ""
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)
    client_left: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed its connection in the middle of a stream."""

    @contextmanager
    def serve(self) -> Iterator[OpenAIServer]:
        """Answer requests until the end of the block."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._get(self)

            def do_POST(self) -> None:
                server._post(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
            http.daemon_threads = False
            self.url = f"http://127.0.0.1:{http.server_port}/v1"
            thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                for said in self.script:
                    if said.pause is not None:
                        said.pause.set()
                http.shutdown()
                thread.join()

    def _may(self, request: BaseHTTPRequestHandler) -> bool:
        if not self.key or request.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        self._send_json(request, Said(401, body={"error": {"message": "wrong API key"}}))
        return False

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        if self._may(request):
            if request.path == "/v1/models" and self.models:
                self._send_json(request, Said(body={"object": "list", "data": self.models}))
            else:
                self._send_json(request, Said(404, body={"detail": "Not Found"}))

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        if not self._may(request):
            return
        self.asked.append({"path": request.path, **body})
        self.asked_at.append(time.monotonic())
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if said.chunks:
            with suppress(ConnectionError):
                self._send_stream(request, said)
        else:
            self._send_json(request, said)

    def _send_json(self, request: BaseHTTPRequestHandler, said: Said) -> None:
        body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        request.send_response(said.status)
        for name, value in {**said.headers, "Content-Length": str(len(body)), "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = True

    def _send_stream(self, request: BaseHTTPRequestHandler, said: Said) -> None:
        request.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}.items():
            request.send_header(name, value)
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        for index, chunk in enumerate(said.chunks):
            if said.pause is not None and index == len(said.chunks) - 1:
                self._wait(request, said.pause)
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            piece = f": comment\n\ndata: {data}\n\n".encode()
            request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            request.wfile.flush()
        if not said.cut:
            request.wfile.write(b"0\r\n\r\n")

    def _wait(self, request: BaseHTTPRequestHandler, pause: threading.Event) -> None:
        """Until the event comes or the client has left."""
        request.connection.settimeout(0.02)
        while not pause.is_set():
            try:
                has_left = request.connection.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:  # it left something unread
                has_left = True
            if has_left:
                self.client_left.set()
                raise ConnectionResetError
        request.connection.settimeout(None)
