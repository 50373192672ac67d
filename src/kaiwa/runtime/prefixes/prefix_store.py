"""What was read, kept on disk: sequences of finished answers, to be gone on with after a restart.

One file each, named by the hash of what it holds:

    8 bytes   "KAIWAPFX"
    u32       version
    32 bytes  SHA-256 of the header
    u32       length of the header
    …         the header, JSON: {"scope": the scope's SHA-256, "token_ids": […]}
    …         what the engine saved, with a checksum of its own

A scope may be somebody's key, so only its hash is written.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import queue
import struct
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from kaiwa.engines.engine import EngineInfo
from kaiwa.errors import CacheFailed, UnusableFile
from kaiwa.runtime.prefixes.radix_tree import RadixTree

MAGIC = b"KAIWAPFX"
VERSION = 1
SUFFIX = ".kv"
MAX_BYTES = 4 * 1024**3
MAX_HEADER_BYTES = 64 * 1024**2
_START = struct.Struct("<8sI32sI")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """One file: whose it is, the tokens that it holds, and its size."""

    path: Path
    scope: str
    token_ids: list[int]
    num_bytes: int
    offset: int
    """Where the engine's part begins."""


class PrefixStore:
    """A folder of one model, bounded in bytes; the least recently used go first. Threads read and write its files."""

    def __init__(self, folder: Path, info: EngineInfo, *, max_bytes: int = MAX_BYTES) -> None:
        """Raises `CacheFailed` where the folder cannot be used. Files that are damaged are passed over."""
        self._folder = folder / _fingerprint(info)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._trees: dict[str, RadixTree[Stored]] = {}
        self._stored: dict[Path, Stored] = {}
        """The least recently used one first."""
        self._to_write: queue.SimpleQueue[tuple[str, list[int], bytes] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime):
                self._take_in(path)
        except OSError as error:
            raise CacheFailed(
                f"{folder} cannot keep what was read: {error.strerror or error}", hint="choose another cache_dir"
            ) from error

    def find(self, token_ids: list[int], scope: str) -> tuple[Stored, int] | None:
        """The file that shares the longest beginning with a prompt, but for its last token, and how long that is."""
        with self._lock:
            tree = self._trees.get(_hashed(scope))
            return next(tree.longest(token_ids[:-1]), None) if tree is not None else None

    def read_soon(self, stored: Stored) -> Future[bytes | None]:
        """As `read`, in a thread of its own."""
        future: Future[bytes | None] = Future()
        reader = threading.Thread(target=lambda: future.set_result(self.read(stored)), name="kaiwa-prefixes")
        reader.start()
        return future

    def read(self, stored: Stored) -> bytes | None:
        """What the engine saved; None where the file is gone."""
        try:
            with stored.path.open("rb") as file:
                file.seek(stored.offset)
                saved = file.read()
            os.utime(stored.path)
        except OSError as error:
            self.discard(stored, error.strerror or str(error))
            return None
        with self._lock:
            if stored.path in self._stored:
                self._stored[stored.path] = self._stored.pop(stored.path)
        return saved

    def discard(self, stored: Stored, reason: str) -> None:
        """A file is of no use: pass it over from now on."""
        log.warning("%s is passed over: %s", stored.path, reason)
        with self._lock:
            self._forget(stored)

    def write(self, token_ids: list[int], scope: str, saved: bytes) -> None:
        """Keep a sequence, some time soon."""
        with self._lock:
            self._to_write.put((_hashed(scope), token_ids, saved))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="kaiwa-prefixes")
                self._writer.start()

    def flush(self) -> None:
        """Wait until all is written."""
        writer = self._writer
        if writer is not None:
            writer.join()

    def _write_all(self) -> None:
        while True:
            with self._lock:
                if self._to_write.empty():
                    self._writer = None
                    return
                item = self._to_write.get()
            assert item is not None
            try:
                self._write(*item)
            except OSError as error:  # a full disk stops no chat
                log.warning("what was read is not kept in %s: %s", self._folder, error.strerror or error)

    def _write(self, scope: str, token_ids: list[int], saved: bytes) -> None:
        header = json.dumps({"scope": scope, "token_ids": token_ids}).encode()
        digest = hashlib.sha256(header).digest()
        path = self._folder / (digest.hex() + SUFFIX)
        if path in self._stored or len(saved) > self._max_bytes:
            return
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_START.pack(MAGIC, VERSION, digest, len(header)))
                file.write(header)
                file.write(saved)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        num_bytes = _START.size + len(header) + len(saved)
        with self._lock:
            self._add(Stored(path, scope, token_ids, num_bytes, _START.size + len(header)))
            self._shrink()

    def _take_in(self, path: Path) -> None:
        try:
            stored = _read_header(path)
        except UnusableFile as error:
            log.warning("%s", error)
            return
        self._add(stored)
        self._shrink()

    def _add(self, stored: Stored) -> None:
        """Remember a file; those that it goes on from are not needed any more."""
        tree = self._trees.setdefault(stored.scope, RadixTree())
        for beginning, length in list(tree.longest(stored.token_ids)):
            if length == len(beginning.token_ids):
                self._remove(beginning)
        self._trees.setdefault(stored.scope, RadixTree()).insert(stored.token_ids, stored)
        self._stored[stored.path] = stored

    def _shrink(self) -> None:
        while sum(stored.num_bytes for stored in self._stored.values()) > self._max_bytes:
            self._remove(next(iter(self._stored.values())))

    def _remove(self, stored: Stored) -> None:
        stored.path.unlink(missing_ok=True)
        self._forget(stored)

    def _forget(self, stored: Stored) -> None:
        if self._stored.pop(stored.path, None) is None:
            return
        self._trees[stored.scope].remove(stored.token_ids)
        if self._trees[stored.scope].is_empty:
            del self._trees[stored.scope]


def _read_header(path: Path) -> Stored:
    """The beginning of a file. Raises `UnusableFile` with the reason."""
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(_START.size)
        if len(start) < _START.size:
            raise _unusable(path, "it is cut short")
        magic, version, digest, length = _START.unpack(start)
        if magic != MAGIC or version != VERSION:
            raise _unusable(path, f"it has the version {version}" if magic == MAGIC else "it is of another kind")
        if length > min(MAX_HEADER_BYTES, num_bytes):
            raise _unusable(path, "it is cut short")
        header = file.read(length)
    if hashlib.sha256(header).digest() != digest:
        raise _unusable(path, "its checksum is wrong")
    try:
        described = json.loads(header)
        scope, token_ids = str(described["scope"]), [int(token_id) for token_id in described["token_ids"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unusable(path, f"its header is not one ({type(error).__name__})") from error
    return Stored(path, scope, token_ids, num_bytes, _START.size + length)


def _unusable(path: Path, reason: str) -> UnusableFile:
    return UnusableFile(path, "prefix", reason)


def _hashed(scope: str) -> str:
    return hashlib.sha256(scope.encode()).hexdigest()


def _fingerprint(info: EngineInfo) -> str:
    """A folder's name for an engine: that of others which can restore what it saves, on whatever machine."""
    identity = info.fingerprint or json.dumps(asdict(info), sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:16]
