"""Fetch a model's files from the hub: only what is missing, from where it was interrupted, checked before it counts."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaiwa.errors import DownloadFailed
from kaiwa.events import Progress
from kaiwa.weights.huggingface import api
from kaiwa.weights.huggingface.api import HubClient, HubFile, Interrupted, Repository, Unreachable
from kaiwa.weights.huggingface.folders import RepositoryFolder
from kaiwa.weights.lock import exclusive

_SPARE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_HINT = "free some space, or set HF_HOME to a folder that takes it; `kaiwa rm` removes models"

OnProgress = Callable[[Progress], None]


def fetch(
    client: HubClient,
    repository: Repository,
    files: Sequence[str],
    folder: RepositoryFolder,
    *,
    on_progress: OnProgress,
) -> Path:
    """The folder with `files` of the repository, each checked against its size and checksum.

    Safe in several processes at once: one fetches, the others wait (stage "waiting"). What an interruption left is
    continued by the next call.

    Raises `DownloadFailed` where the disk is too full, a file arrives otherwise than the hub described it, or the
    connection ends again and again.
    """
    wanted = [repository.files[name] for name in files]
    total = sum(file.num_bytes for file in wanted)
    with _disk_errors(folder.path):
        (folder.path / "blobs").mkdir(parents=True, exist_ok=True)
    waiting = Progress("waiting", 0, total)
    with _disk_errors(folder.path), exclusive(folder.lock, on_wait=lambda: on_progress(waiting)):
        missing = [file for file in wanted if not _is_whole(folder.blob(file.key), file)]
        _check_space(missing, folder)
        counter = _Counter(total, on_progress, total - sum(file.num_bytes for file in missing))
        for file in missing:
            _Download(client, repository, file, folder, counter).run()
        for file in wanted:
            folder.link(repository.commit, file.name, file.key)
    return folder.snapshot(repository.commit)


@dataclass(slots=True)
class _Counter:
    """Bytes of all files together."""

    total: int
    on_progress: OnProgress
    done: int = 0

    def add(self, num_bytes: int) -> None:
        """So many more are here; fewer than none where a file begins anew."""
        self.done += num_bytes
        self.on_progress(Progress("download", self.done, self.total))


@dataclass(slots=True)
class _Download:
    """One file on its way."""

    client: HubClient
    repository: Repository
    file: HubFile
    folder: RepositoryFolder
    counter: _Counter
    digest: Any = None
    has: int = 0
    """Bytes that are here and in the digest."""
    was_resumed: bool = field(default=False)

    def run(self) -> None:
        """Fetch it, again and again while that brings it further."""
        self._take_up()
        failures = 0
        while self.has < self.file.num_bytes:
            before = self.has
            try:
                self._read()
                problem = Interrupted("the connection was closed")
            except Interrupted as error:
                problem = error
            if self.has >= self.file.num_bytes:
                break
            failures = 0 if self.has > before else failures + 1
            if failures > len(api.WAITS_S):
                raise self._given_up(problem) from problem
            wait_s = api.WAITS_S[max(failures - 1, 0)] if problem.wait_s is None else problem.wait_s
            time.sleep(min(wait_s, api.MAX_WAIT_S))
        self._finish()

    def _take_up(self) -> None:
        """What an earlier attempt left counts, once it is read into the digest."""
        self.digest, self.has = _new_digest(self.file), 0
        unfinished = self.folder.unfinished(self.file.key)
        if not unfinished.exists():
            return
        with unfinished.open("rb") as part:
            while chunk := part.read(_CHUNK_BYTES):
                self.digest.update(chunk)
                self.has += len(chunk)
        self.was_resumed = self.has > 0
        self.counter.add(self.has)

    def _begin_anew(self) -> None:
        self.counter.add(-self.has)
        self.folder.unfinished(self.file.key).unlink(missing_ok=True)
        self.digest, self.has, self.was_resumed = _new_digest(self.file), 0, False

    def _read(self) -> None:
        name, commit = self.repository.name, self.repository.commit
        with self.client.read(name, commit, self.file.name, start=self.has) as (start, chunks):
            if start != self.has:
                self._begin_anew()
            with self.folder.unfinished(self.file.key).open("ab") as part:
                for chunk in chunks:
                    part.write(chunk)
                    self.digest.update(chunk)
                    self.has += len(chunk)
                    self.counter.add(len(chunk))
                part.flush()
                os.fsync(part.fileno())

    def _finish(self) -> None:
        """Give the file its name if it is the right one; else begin anew, once, where an old part may be to blame."""
        unfinished = self.folder.unfinished(self.file.key)
        if self.file.num_bytes == 0:
            unfinished.touch()
        found = self.digest.hexdigest()
        # Where locks are none, as on some network file systems, two processes may have written to one file.
        is_alone = unfinished.stat().st_size == self.has
        if self.has == self.file.num_bytes and found == self.file.key and is_alone:
            unfinished.replace(self.folder.blob(self.file.key))
            return
        was_resumed = self.was_resumed
        self._begin_anew()
        if not is_alone:
            raise DownloadFailed(
                f"another process wrote to {unfinished} while it was fetched, though it is locked",
                hint="fetch it once more, from one process only",
            )
        if was_resumed:
            self.run()
            return
        raise DownloadFailed(
            f"{self.file.name} of {self.repository.name} arrived with the checksum {found}; "
            f"the hub says that it has {self.file.key}",
            hint="try again; if it stays so, a proxy or mirror (HF_ENDPOINT) changes what it passes on",
        )

    def _given_up(self, problem: Interrupted) -> DownloadFailed:
        return Unreachable(
            f"the connection for {self.file.name} of {self.repository.name} ended after {self.has:,} of "
            f"{self.file.num_bytes:,} bytes, {len(api.WAITS_S) + 1} times in a row: {problem}",
            hint="run the same again when the network is back: it goes on where it stopped",
        )


def _new_digest(file: HubFile) -> Any:
    """SHA-256 of large files; git's checksum of small ones, which is a SHA-1 over a header and the bytes."""
    if file.sha256:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.num_bytes, usedforsecurity=False)


def _is_whole(blob: Path, file: HubFile) -> bool:
    """Whether the file is here. One that is here got its name after it was checked: by us, or by Hugging Face's own."""
    try:
        return blob.stat().st_size == file.num_bytes
    except OSError:
        return False


def _check_space(missing: Sequence[HubFile], folder: RepositoryFolder) -> None:
    needed = sum(file.num_bytes for file in missing)
    for file in missing:
        unfinished = folder.unfinished(file.key)
        needed -= unfinished.stat().st_size if unfinished.exists() else 0
    free = shutil.disk_usage(folder.path).free
    if missing and free < needed + _SPARE_BYTES:
        raise DownloadFailed(
            f"the model takes {needed:,} bytes more, and {folder.path.parent} has {free:,} free", hint=_HINT
        )


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        what = "the disk is full" if full else str(error.strerror or error)
        raise DownloadFailed(f"the model cannot be kept in {path}: {what}", hint=_HINT) from error
