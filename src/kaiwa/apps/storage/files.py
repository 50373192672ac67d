"""The bytes of uploaded files and of elements: a folder for each chat, and names that are ids and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from kaiwa.errors import Refused

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Files:
    """A folder of chats' files. Ids are checked, so that none leads out of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, chat_id: str, file_id: str) -> Path:
        """Where the bytes of a file are, or would be. Raises `Refused` for what is no id."""
        for one in (chat_id, file_id):
            if not _ID.fullmatch(one):
                raise Refused("invalid", f"{one!r} is not the id of a chat or file")
        return self._folder / chat_id / file_id

    def write(self, chat_id: str, file_id: str, content: bytes) -> None:
        """Keep bytes that are in memory already."""
        with self._create(chat_id, file_id) as file:
            file.write(content)

    async def receive(self, chat_id: str, file_id: str, chunks: AsyncIterator[bytes], *, max_bytes: int) -> int:
        """Write what arrives to the disk as it arrives; its number of bytes.

        Raises `Refused` as soon as there are more than `max_bytes`, and leaves nothing behind then.
        """
        num_bytes = 0
        file = self._create(chat_id, file_id)
        try:
            with file:
                async for chunk in chunks:
                    num_bytes += len(chunk)
                    if num_bytes > max_bytes:
                        raise Refused(
                            "too_large",
                            f"the file is larger than {max_bytes / 1e6:,.0f} MB, the most that is taken",
                        )
                    file.write(chunk)
        except BaseException:
            self.path(chat_id, file_id).unlink(missing_ok=True)
            raise
        return num_bytes

    def remove_chat(self, chat_id: str) -> None:
        """Forget a chat's files, whether it has any or not."""
        shutil.rmtree(self._folder / chat_id, ignore_errors=True)

    def _create(self, chat_id: str, file_id: str) -> BinaryIO:
        path = self.path(chat_id, file_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return path.open("xb")
        except FileExistsError:
            raise Refused("conflict", f"there is a file {file_id!r} already", hint="send it with a new id") from None
