"""A server on this machine that speaks the Hugging Face Hub's API, with repositories made on the spot."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE_BYTES = 4096
"""Files of this size and more are kept as the hub keeps large files, known by their SHA-256."""


@dataclass
class Repo:
    """A repository. `revisions` are its branches; `token` is what a reader must have, if anything."""

    files: dict[str, bytes]
    licence: str = "apache-2.0"
    token: str = ""
    is_gated: bool = False
    revisions: tuple[str, ...] = ("main",)

    @property
    def commit(self) -> str:
        content = sorted((name, hashlib.sha1(data).hexdigest()) for name, data in self.files.items())
        return hashlib.sha1(repr(content).encode()).hexdigest()


@dataclass
class HubServer:
    """The hub. What it does wrong is set by the test."""

    repos: dict[str, Repo] = field(default_factory=dict)
    valid_tokens: set[str] = field(default_factory=set)
    url: str = ""
    cuts: list[int] = field(default_factory=list)
    """For each of the next answers with a file: end the connection after so many of its bytes."""
    busy: int = 0
    """How many of the next answers with a file are 503 with Retry-After."""
    too_many: int = 0
    """How many of the next answers of any kind are 429 with Retry-After."""
    cdn: str = ""
    """Where files are handed out, if elsewhere: the address of another such server."""
    tokens: list[str] = field(default_factory=list)
    """The token of each request, or ""."""
    corrupt: set[str] = field(default_factory=set)
    """Files whose bytes are not what the hub says of them."""
    knows_ranges: bool = True
    paths: list[str] = field(default_factory=list)
    """What was asked for: the path, and behind a `#` where the range began."""
    has_begun: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event | None = None
    """If set, files stop after half of their bytes until this event comes."""

    @contextmanager
    def serve(self) -> Iterator[HubServer]:
        """Answer requests until the end of the block."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(ConnectionError):  # whoever asked may be gone
                    hub.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = False  # so that closing waits for them
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                if self.go_on is not None:
                    self.go_on.set()
                server.shutdown()
                thread.join()

    def files_asked_for(self) -> list[str]:
        """The files whose bytes were asked for, in order, with `#` and where the range began."""
        return [path.split("/resolve/")[1].partition("/")[2] for path in self.paths if "/resolve/" in path]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path).strip("/")
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.paths.append(f"{path}#{start}" if start else path)
        self.tokens.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        parts = path.split("/")
        if self.too_many:
            self.too_many -= 1
            self._come_again(request, 429)
        elif path == "api/models":
            self._search(request)
        elif parts[:2] == ["api", "models"] and len(parts) >= 4:
            self._describe(request, "/".join(parts[2:4]), "/".join(parts[5:]) or "main")
        elif len(parts) > 4 and parts[2] == "resolve":
            self._send_file(request, "/".join(parts[:2]), parts[3], "/".join(parts[4:]), start)
        else:
            request.send_error(404)

    def _search(self, request: BaseHTTPRequestHandler) -> None:
        words = parse_qs(urlsplit(request.path).query).get("search", [""])[0].lower().split("-")
        near = [{"id": name, "modelId": name} for name in self.repos if words[0] in name.lower()]
        self._send_json(request, near)

    def _may_read(self, request: BaseHTTPRequestHandler, repo: Repo | None, *, content: bool) -> Repo | None:
        """The repository, or None after a refusal as the hub words it."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.valid_tokens:
            self._refuse(request, 401, message="Invalid credentials in Authorization header")
        elif repo is None or (repo.token and not repo.is_gated and token != repo.token):
            self._refuse(request, 404 if token else 401, code="RepoNotFound" if token else "")
        elif content and repo.is_gated and token != repo.token:
            self._refuse(request, 403 if token else 401, code="GatedRepo")
        else:
            return repo
        return None

    def _describe(self, request: BaseHTTPRequestHandler, name: str, revision: str) -> None:
        repo = self._may_read(request, self.repos.get(name), content=False)
        if repo is None:
            return
        if revision not in (*repo.revisions, repo.commit):
            self._refuse(request, 404, code="RevisionNotFound")
            return
        self._send_json(
            request,
            {
                "id": name,
                "sha": repo.commit,
                "gated": "manual" if repo.is_gated else False,
                "cardData": {"license": repo.licence},
                "tags": [f"license:{repo.licence}"],
                "siblings": [_sibling(file, data) for file, data in repo.files.items()],
            },
        )

    def _send_file(self, request: BaseHTTPRequestHandler, name: str, revision: str, file: str, start: int) -> None:
        repo = self._may_read(request, self.repos.get(name), content=True)
        if repo is None:
            return
        if self.busy:
            self.busy -= 1
            self._come_again(request, 503)
            return
        if self.cdn:
            request.send_response(302)
            request.send_header("Location", self.cdn + request.path)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if file not in repo.files or revision not in (*repo.revisions, repo.commit):
            self._refuse(request, 404, code="EntryNotFound")
            return
        data = repo.files[file]
        if file in self.corrupt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self._send_bytes(request, data, start if self.knows_ranges else 0)

    def _come_again(self, request: BaseHTTPRequestHandler, status: int) -> None:
        request.send_response(status)
        request.send_header("Retry-After", "0")
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _send_bytes(self, request: BaseHTTPRequestHandler, data: bytes, start: int) -> None:
        if start > len(data):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        body = data[start:]
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.cuts:
            request.wfile.write(body[: self.cuts.pop(0)])
            return
        half = len(body) // 2
        request.wfile.write(body[:half])
        if self.go_on is not None and len(body) >= LARGE_BYTES:
            request.wfile.flush()
            self.has_begun.set()
            self.go_on.wait(60)
        request.wfile.write(body[half:])

    def _send_json(self, request: BaseHTTPRequestHandler, content: object) -> None:
        body = json.dumps(content).encode()
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _refuse(self, request: BaseHTTPRequestHandler, status: int, *, code: str = "", message: str = "") -> None:
        request.send_response(status)
        for header, value in (("X-Error-Code", code), ("X-Error-Message", message)):
            if value:
                request.send_header(header, value)
        request.send_header("Content-Length", "0")
        request.end_headers()


def _sibling(file: str, data: bytes) -> dict[str, object]:
    git_sha1 = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    sibling: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": git_sha1}
    if len(data) >= LARGE_BYTES:
        sha256 = hashlib.sha256(data).hexdigest()
        sibling["lfs"] = {"size": len(data), "sha256": sha256, "oid": sha256, "pointerSize": 135}
    return sibling
