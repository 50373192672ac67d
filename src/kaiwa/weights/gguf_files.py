"""Which GGUF files are models: not what comes beside one, nor the later parts of a split one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from kaiwa.weights import gguf

# The eyes of a model, notes of how it was quantized, a further layer that guesses tokens ahead.
_COMPANIONS = ("mmproj", "imatrix", "mtp-")
_SUFFIX = ".gguf"


def is_model(file: str) -> bool:
    """Whether a file, by its name, is a model or a part of one."""
    path = PurePosixPath(file)
    return path.suffix == _SUFFIX and not path.name.lower().startswith(_COMPANIONS)


def first_parts(files: Iterable[str]) -> list[str]:
    """The files to open, of those in a folder: one for each model."""
    return sorted(
        file
        for file in files
        if is_model(file) and (not (part := gguf.PART.fullmatch(PurePosixPath(file).name)) or int(part["number"]) == 1)
    )


def find(path: Path) -> Path | None:
    """The GGUF file to open for a path: itself, or the only model in the folder; else None."""
    if not path.is_dir():
        return path if path.suffix == _SUFFIX else None
    try:
        models = first_parts(entry.name for entry in path.iterdir())
    except OSError:
        return None  # whoever opens the folder says why
    return path / models[0] if len(models) == 1 else None
