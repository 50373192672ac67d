"""The bytes of uploaded files and of elements: one file each, in a folder, named by an id and by nothing else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from kaiwa.errors import Refused

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Files:
    """A folder of files. Ids are checked, so that none leads out of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file_id: str) -> Path:
        """Where the bytes of a file are, or would be. Raises `Refused` for what is no id."""
        if not _ID.fullmatch(file_id):
            raise Refused("invalid", f"{file_id!r} is not the id of a file")
        return self._folder / file_id

    def write(self, file_id: str, content: bytes) -> None:
        """Keep bytes that are in memory already."""
        with self._create(file_id) as file:
            file.write(content)

    async def receive(self, file_id: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Write what arrives to the disk as it arrives; its number of bytes.

        Raises `Refused` as soon as there are more than `max_bytes`, and leaves nothing behind then.
        """
        num_bytes = 0
        try:
            with self._create(file_id) as file:
                async for chunk in chunks:
                    num_bytes += len(chunk)
                    if num_bytes > max_bytes:
                        raise Refused(
                            "too_large",
                            f"the file is larger than {max_bytes / 1e6:,.0f} MB, the most that is taken",
                        )
                    file.write(chunk)
        except BaseException:
            self.remove(file_id)
            raise
        return num_bytes

    def remove(self, *file_ids: str) -> None:
        """Forget files, whether they are there or not."""
        for file_id in file_ids:
            self.path(file_id).unlink(missing_ok=True)

    def _create(self, file_id: str) -> BinaryIO:
        path = self.path(file_id)
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            return path.open("xb")
        except FileExistsError:
            raise Refused("conflict", f"there is a file {file_id!r} already", hint="send it with a new id") from None
