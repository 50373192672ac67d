"""Receipts: what was fetched from the hub under which name, so that a start asks nobody and a list needs no network."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kaiwa import paths
from kaiwa.weights.huggingface.hub_name import HubName


@dataclass(frozen=True, slots=True)
class Receipt:
    """A model that was fetched and checked. `files` are their sizes by name, in bytes; `folder` is where they are."""

    name: str
    repo: str
    revision: str
    commit: str
    folder: str
    entry: str
    """The file to open, or "" for the folder."""
    files: Mapping[str, int]
    quantization: str = ""
    licence: str = ""

    @property
    def path(self) -> Path:
        """What to open."""
        return Path(self.folder, self.entry) if self.entry else Path(self.folder)

    @property
    def num_bytes(self) -> int:
        """Of all files."""
        return sum(self.files.values())

    @property
    def used_at(self) -> float:
        """When the model was last asked for, in seconds since 1970."""
        try:
            return _place(self.name).stat().st_mtime
        except OSError:
            return 0.0

    def is_whole(self) -> bool:
        """Whether all files are there and as long as they were, without reading them."""
        try:
            return all((Path(self.folder) / name).stat().st_size == size for name, size in self.files.items())
        except OSError:
            return False

    def touch(self) -> None:
        """Note that the model is used now."""
        with suppress(OSError):  # a home that cannot be written to still has its models
            os.utime(_place(self.name))

    def write(self) -> None:
        """Keep it, in one step that an interruption cannot halve."""
        place = _place(self.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(asdict(self), indent=1))
        unfinished.replace(place)

    def discard(self) -> None:
        """Forget it."""
        _place(self.name).unlink(missing_ok=True)


def find(name: HubName) -> Receipt | None:
    """The receipt of a name, if there is one."""
    return _read(_place(str(name)))


def all_receipts() -> list[Receipt]:
    """All that can be read, by name."""
    found = [_read(place) for place in sorted(_folder().glob("*.json"))]
    return [receipt for receipt in found if receipt is not None]


def _folder() -> Path:
    return paths.models() / "hub"


def _place(name: str) -> Path:
    """A file name that is a name of its own on every system, whatever letters count as the same there."""
    readable = re.sub(r"[^\w.-]+", "--", name)[:80]
    return _folder() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json"


def _read(place: Path) -> Receipt | None:
    try:
        return Receipt(**json.loads(place.read_text()))
    except (OSError, ValueError, TypeError):
        return None  # none, or damaged: the files are checked anew
