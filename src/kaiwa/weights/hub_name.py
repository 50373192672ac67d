"""The name of a model on the Hugging Face Hub: `org/name`, with a revision, a quantization or a file where wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kaiwa.errors import InvalidOption

_PART = r"[A-Za-z0-9][\w.-]*"
_CHOICE = r":(?P<quantization>[\w.-]+)|/(?P<file>\S+\.gguf)"
_NAME = re.compile(rf"(?P<repo>{_PART}/{_PART})(@(?P<revision>[^:@\s]+?))?({_CHOICE})?")
_FILE_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".json")
_ADDRESSES = ("https://huggingface.co/", "https://hf.co/", "hf.co/", "huggingface.co/", "hf://")
EXPECTED = "org/name, org/name:Q4_K_M, org/name/file.gguf, each with @revision after org/name"


@dataclass(frozen=True, slots=True)
class HubName:
    """What a person typed, in parts. At most one of `quantization` and `file` is given."""

    repo: str
    revision: str = "main"
    quantization: str = ""
    """Of a GGUF file, as its name says it: "Q4_K_M"."""
    file: str = ""
    """A GGUF file in the repository, with its folder."""

    def __str__(self) -> str:
        revision = "" if self.revision == "main" else f"@{self.revision}"
        choice = f":{self.quantization}" if self.quantization else f"/{self.file}" if self.file else ""
        return f"{self.repo}{revision}{choice}"


def parse(text: str, *, revision: str | None = None) -> HubName | None:
    """The parts of a name, or None where the text is none. `revision` says it apart from the text.

    `org/name.gguf` is a path and no name; the page's address in a browser is a name as well.

    Raises `InvalidOption` for a revision that cannot be one.
    """
    for address in _ADDRESSES:
        text = text.removeprefix(address)
    found = _NAME.fullmatch(text)
    if found is None or ".." in text:
        return None
    file = found["file"] or ""
    if not file and not found["quantization"] and found["repo"].endswith(_FILE_ENDINGS):
        return None
    name = HubName(found["repo"], found["revision"] or "main", found["quantization"] or "", file)
    if revision is not None:
        name = replace(name, revision=revision)
    _check_revision(name.revision)
    return name


def _check_revision(revision: str) -> None:
    if not revision or ".." in revision or revision.startswith("/") or any(sign in revision for sign in " :@\\\0"):
        raise InvalidOption(f"revision={revision!r} is impossible", hint="it is a branch, a tag or a commit")
