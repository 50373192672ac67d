"""The folder where Hugging Face's programs keep what they fetch, so that a model is on disk once for all of them.

`models--org--name/blobs/KEY` holds a file under its checksum, `snapshots/COMMIT/NAME` leads to it, and `refs/REVISION`
says which commit a branch was at. https://huggingface.co/docs/huggingface_hub/guides/manage-cache describes it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class RepositoryFolder:
    """A repository's place in the cache; it may not exist yet."""

    path: Path

    @property
    def lock(self) -> Path:
        """Held by whoever fetches from the repository."""
        return self.path / ".kaiwa.lock"

    def blob(self, key: str) -> Path:
        """Where the file with this checksum lies."""
        return self.path / "blobs" / key

    def unfinished(self, key: str) -> Path:
        """Where it grows; kept when a fetch is interrupted."""
        return self.path / "blobs" / f"{key}.incomplete"

    def snapshot(self, commit: str) -> Path:
        """The folder with the files of one commit under their own names."""
        return self.path / "snapshots" / commit

    def commit_of(self, revision: str) -> str:
        """The commit that a branch or tag was at when it was last looked up, or "" where it never was."""
        if self.snapshot(revision).is_dir():
            return revision
        with suppress(OSError, UnicodeDecodeError):
            return (self.path / "refs" / revision).read_text().strip()
        return ""

    def files_of(self, commit: str) -> list[str]:
        """The names of what is here of a commit."""
        root = self.snapshot(commit)
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]

    def note(self, revision: str, commit: str) -> None:
        """Write down which commit a revision is at."""
        if revision == commit:
            return
        reference = self.path / "refs" / revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        unfinished = reference.with_name(f"{reference.name}.{os.getpid()}")
        unfinished.write_text(commit)
        unfinished.replace(reference)

    def link(self, commit: str, name: str, key: str) -> None:
        """Let a commit's file lead to its blob: a link where the system has them, else the file itself."""
        place = self.snapshot(commit).joinpath(*PurePosixPath(name).parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        try:
            place.symlink_to(os.path.relpath(self.blob(key), place.parent))
        except OSError:
            shutil.copyfile(self.blob(key), place)

    def remove(self, commit: str, names: list[str]) -> int:
        """Remove a commit's files, and the blobs that no other commit needs; the bytes that are free again."""
        blobs = {}
        for name in names:
            place = self.snapshot(commit).joinpath(*PurePosixPath(name).parts)
            with suppress(OSError):
                blobs[place.resolve()] = place.stat().st_size
            place.unlink(missing_ok=True)
        kept = {path.resolve() for path in (self.path / "snapshots").rglob("*") if path.is_file()}
        freed = 0
        for blob, num_bytes in blobs.items():
            if blob not in kept:
                blob.unlink(missing_ok=True)
                freed += num_bytes
        if not kept:
            shutil.rmtree(self.path, ignore_errors=True)
        return freed


def folder(repo: str) -> RepositoryFolder:
    """The place of `org/name`, under `HF_HUB_CACHE` or `HF_HOME` as `huggingface_hub` reads them."""
    from huggingface_hub import constants

    return RepositoryFolder(Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}")
