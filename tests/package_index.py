"""A package index on this machine, with wheels made on the spot: what pip talks to in tests of downloads."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal


def wheel_bytes(package: str, version: str, files: Mapping[str, bytes], *, is_packed: bool = True) -> bytes:
    """A wheel with these files."""
    distribution = f"{package.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{distribution}/METADATA", metadata)
        archive.writestr(f"{distribution}/WHEEL", tags)
        archive.writestr(f"{distribution}/RECORD", "")
    return buffer.getvalue()


@dataclass
class PackageIndex:
    """An index of one wheel. `mood` is how it serves it: whole, cut short, or only half of it until `go_on` is set."""

    package: str
    version: str
    wheel: bytes
    mood: Literal["whole", "cut", "half"] = "whole"
    url: str = ""
    num_downloads: int = 0
    has_sent_half: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def wheel_name(self) -> str:
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def page(self) -> bytes:
        digest = hashlib.sha256(self.wheel).hexdigest()
        link = f'<a href="/files/{self.wheel_name}#sha256={digest}">{self.wheel_name}</a>'
        return f"<!DOCTYPE html><html><body>{link}</body></html>".encode()

    @contextmanager
    def serve(self) -> Iterator[PackageIndex]:
        """Answer requests until the end of the block."""
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = False  # so that closing waits for them
            self.url = f"http://127.0.0.1:{server.server_port}/simple"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                self.go_on.set()
                server.shutdown()
                thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path == f"/simple/{self.package}/":
            self._send(request, self.page, "text/html")
        elif request.path == f"/files/{self.wheel_name}":
            self.num_downloads += 1
            self._send(request, self.wheel, "application/octet-stream", self.mood)
        else:
            request.send_error(404)

    def _send(self, request: BaseHTTPRequestHandler, body: bytes, type: str, mood: str = "whole") -> None:
        request.send_response(200)
        request.send_header("Content-Type", type)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        half = len(body) // 2
        request.wfile.write(body[:half])
        if mood == "cut":
            return
        if mood == "half":
            self.has_sent_half.set()
            self.go_on.wait(60)
        with suppress(ConnectionError):  # whoever asked may have been killed
            request.wfile.write(body[half:])
