"""Where quantized weights are kept: one folder per model and recipe, and never an answer for a file that has changed.

In it lies a folder named by a key: the weights, under Hugging Face's names, and a note with their checksums and where
they come from. It gets its name when all of it is written.

The key is a SHA-256 of the recipe, of every tensor's name, shape and format, and of each file's size, times of change,
number on its disk and samples of its bytes. Finding it must cost no more than reading the files' headers, or a start
would read again what quantizing saves; and no file's content changes without its system noting a new time of change
(`st_ctime`, which programs cannot set). The samples are for systems that keep no such time. A model that is copied
elsewhere is quantized again, which is the harmless one of the two mistakes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kaiwa import paths
from kaiwa.errors import CacheFailed, KaiwaError, UnusableFile
from kaiwa.weights import gguf
from kaiwa.weights.checkpoint import Checkpoint
from kaiwa.weights.gguf_writer import GGUFWriter, TensorInfo
from kaiwa.weights.lock import exclusive

REVISION = 1
"""To be raised whenever the same weights would be rounded otherwise."""

Write = Callable[[TensorInfo, Iterable[bytes]], None]
Checksum = Callable[[memoryview], int]

_WEIGHTS, _NOTE = "weights.gguf", "note.json"
_LOCK, _UNFINISHED = ".lock", ".unfinished"
_NUM_SAMPLES, _SAMPLE_BYTES = 64, 4096
_TICK_S = 0.05
"""Two changes within one tick of a file system's clock look like one."""
_SPARE_BYTES = 16 << 20
_HINT = "free some space, or set KAIWA_HOME to a folder that takes it"


def folder() -> Path:
    """Where all entries are. Deleting it, or any folder in it, costs no more than quantizing again."""
    return paths.cache() / "quantized"


class Entry:
    """The place of one model under one recipe; `infos` are the tensors that it holds."""

    def __init__(self, checkpoint: Checkpoint, recipe: str, infos: Sequence[TensorInfo]) -> None:
        self._source = checkpoint.path.resolve()
        self._files = checkpoint.files
        self._infos = infos
        formats = {tensor.name: tensor.format for tensor in checkpoint.tensors.values()}
        self._plan = [REVISION, recipe, [[i.name, i.shape, formats[i.name], i.format] for i in infos]]
        place = hashlib.sha256(os.fsencode(self._source)).hexdigest()[:12]
        self._folder = folder() / f"{self._source.stem}-{recipe}-{place}"

    def open_or_make(
        self, write_all: Callable[[Write], None], checksum: Checksum, *, on_wait: Callable[[], None]
    ) -> gguf.GGUFFile:
        """The quantized tensors, mapped. `write_all` is called with a function that takes them one after the other.

        Safe in several processes at once: one makes them, the others wait. Whatever interrupts it, there is no half
        file under the final name. A damaged file is made again. Raises `CacheFailed` where the disk cannot take it.
        """
        key = self._key()
        if file := self._open(key, checksum):
            return file
        with self._disk_errors():
            self._folder.mkdir(parents=True, exist_ok=True)
        with self._disk_errors(), exclusive(self._folder / _LOCK, on_wait=on_wait):
            if file := self._open(key, checksum):  # another process made it
                return file
            _remove_orphans()
            self._remove_all()
            self._check_space()
            self._make(key, write_all, checksum)
            if file := self._open(key, checksum):
                return file
        raise CacheFailed(f"what was written to {self._folder} reads back otherwise", hint="check the disk")

    def _key(self) -> str:
        """Waits until a change that came now would be seen."""
        stats = [path.stat() for path in self._files]
        newest = max((max(stat.st_mtime, stat.st_ctime) for stat in stats), default=0.0)
        time.sleep(min(max(newest + _TICK_S - time.time(), 0.0), _TICK_S))
        content = [self._plan, [_identity(path) for path in self._files]]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def _open(self, key: str, checksum: Checksum) -> gguf.GGUFFile | None:
        """What lies under this key, if it is whole."""
        home = self._folder / key
        try:
            checksums = json.loads((home / _NOTE).read_text())["checksums"]
            file = gguf.read(home / _WEIGHTS)
        except (KaiwaError, OSError, ValueError, LookupError, TypeError):
            return None  # not there, or damaged: it is made anew
        if _holds(file, self._infos) and checksums == _checksums(file, checksum):
            return file
        file.close()
        return None

    def _make(self, key: str, write_all: Callable[[Write], None], checksum: Checksum) -> None:
        unfinished = self._folder / _UNFINISHED
        unfinished.mkdir()
        try:
            with (unfinished / _WEIGHTS).open("xb") as weights:
                write_all(GGUFWriter(weights, "kaiwa-quantized", self._infos).write)
                weights.flush()
                os.fsync(weights.fileno())
            if self._key() != key:
                raise UnusableFile(self._source, "model", "it changed while it was read", hint="load it again")
            file = gguf.read(unfinished / _WEIGHTS)
            try:
                note = {"source": str(self._source), "checksums": _checksums(file, checksum)}
            finally:
                file.close()
            with (unfinished / _NOTE).open("x") as text:
                json.dump(note, text)
                text.flush()
                os.fsync(text.fileno())
            unfinished.rename(self._folder / key)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _remove_all(self) -> None:
        """What an earlier state of the same model left, or an interruption."""
        for entry in self._folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)

    def _check_space(self) -> None:
        needed = sum(info.num_bytes for info in self._infos) + _SPARE_BYTES
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise CacheFailed(
                f"the quantized weights take {needed:,} bytes, and {self._folder} has {free:,} free", hint=_HINT
            )

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheFailed(
                f"the quantized weights cannot be kept in {self._folder}: {error.strerror or error}", hint=_HINT
            ) from error


def _identity(path: Path) -> list[Any]:
    """What tells one state of a file from another."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        samples = hashlib.sha256()
        for index in range(_NUM_SAMPLES):
            file.seek(index * max(stat.st_size - _SAMPLE_BYTES, 0) // (_NUM_SAMPLES - 1))
            samples.update(file.read(_SAMPLE_BYTES))
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, samples.hexdigest()]


def _holds(file: gguf.GGUFFile, infos: Sequence[TensorInfo]) -> bool:
    """Whether the file's tensors are those, and no others."""
    found = {tensor.name: (tensor.format, tensor.shape) for tensor in file.tensors.values()}
    return found == {info.name: (info.format, info.shape) for info in infos}


def _checksums(file: gguf.GGUFFile, checksum: Checksum) -> dict[str, int]:
    sums = {}
    for tensor in file.tensors.values():
        sums[tensor.name] = checksum(tensor.data)
        file.release(tensor)
    return sums


def _remove_orphans() -> None:
    """Remove the entries of models that are gone, so that the cache never outgrows the models."""
    for note in folder().glob(f"*/*/{_NOTE}"):
        try:
            source = Path(json.loads(note.read_text())["source"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # damaged: its own model's next start sees to it
        if not source.exists():
            shutil.rmtree(note.parents[1], ignore_errors=True)
