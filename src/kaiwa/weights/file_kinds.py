"""Whether a file is there, and what it really is where its name says otherwise: told from its first bytes."""

from __future__ import annotations

from pathlib import Path

ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".json")
"""How names of files end that people mean a model by."""

# Each row: how such a file begins (compared in lower case), what it is, and what to do.
_KINDS: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    (
        (b"version https://git-lfs",),
        "it is a Git LFS pointer, a note of where the model is and not the model",
        "run `git lfs pull` in its folder, or download the file itself",
    ),
    (
        (b"<!doctype html", b"<html", b"<?xml"),
        "it is a web page, saved under the name of a model",
        "download it with the page's download link, and check whether the model asks you to log in first",
    ),
    (
        (b"pk\x03\x04", b"pk\x05\x06"),
        "it is a zip archive (a wheel, or a PyTorch pickle)",
        "unpack it, or get the model as a .gguf file or as safetensors",
    ),
    (
        (b"\x80\x02", b"\x80\x04"),
        "it is a Python pickle, which can run any code when it is read",
        "convert it to safetensors",
    ),
    (
        (b"lmgg", b"fmgg", b"tjgg", b"algg"),
        "it is a GGML file, the format that GGUF replaced in 2023",
        "get a GGUF file of the model",
    ),
    ((b"gguf",), "it is a GGUF file", "give it a name that ends in .gguf"),
    ((b"\x1f\x8b",), "it is compressed with gzip", "unpack it first"),
)


def describe(head: bytes) -> tuple[str, str] | None:
    """What a file with these first bytes is, and what to do about it; None where nothing is recognised."""
    text = head.lstrip(b"\xef\xbb\xbf\r\n\t ").lower()
    for beginnings, what, hint in _KINDS:
        if text.startswith(beginnings):
            return what, hint
    return None


def exists(path: Path) -> bool:
    """Whether a file or folder is there; never an error."""
    try:
        path.stat()
    except (OSError, ValueError):  # not there, not reachable, or a name that no system takes
        return False
    return True
