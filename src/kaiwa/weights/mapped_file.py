"""A file mapped into memory, read-only: its pages come when they are read and go when memory is short."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from pathlib import Path

from kaiwa.errors import ModelNotFound, UnusableFile
from kaiwa.weights import file_kinds


class MappedFile:
    """The bytes of a file, without a copy. `kind` is what errors call it ("GGUF")."""

    def __init__(self, path: Path, kind: str) -> None:
        if file_kinds.exists(path) and not path.is_file():
            raise UnusableFile(path, kind, "it is not a file")
        try:
            with path.open("rb") as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError as error:
            raise ModelNotFound(f"there is no file {path}") from error
        except ValueError as error:
            raise UnusableFile(path, kind, "it is empty", hint="download or copy it again") from error
        except OSError as error:
            raise UnusableFile(path, kind, f"it cannot be read: {error.strerror}") from error
        self.path = path
        self.kind = kind
        self.num_bytes = len(self.data)
        self._whole = memoryview(self.data)
        self._views: list[memoryview] = []

    def view(self, begin: int, end: int) -> memoryview:
        """Bytes `begin` to `end`, valid until `close`."""
        view = self._whole[begin:end]
        self._views.append(view)
        return view

    def check(self) -> None:
        """Raise `UnusableFile` where the file has become shorter: to read what is gone would end the process."""
        if self.data.size() < self.num_bytes:
            raise UnusableFile(
                self.path,
                self.kind,
                f"it became shorter while it was in use: {self.data.size():,} of {self.num_bytes:,} bytes are left",
                hint="load it again when nothing writes to it any more",
            )

    def read_in_order(self) -> None:
        """Tell the system that the file will be read from its start to its end."""
        if sys.platform != "win32":
            self.data.madvise(mmap.MADV_SEQUENTIAL)

    def release(self, begin: int, end: int) -> None:
        """Tell the system that the pages wholly between `begin` and `end` are not needed for now."""
        first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        last = end // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last and sys.platform != "win32":
            self.data.madvise(mmap.MADV_DONTNEED, first, last - first)

    def close(self) -> None:
        """Take the views back and unmap the file; where something else still uses one, the file stays until it ends."""
        for view in (*self._views, self._whole):
            with suppress(BufferError):
                view.release()
        with suppress(BufferError):
            self.data.close()
