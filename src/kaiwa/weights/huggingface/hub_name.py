"""The name of a model on the Hugging Face Hub: `org/name`, with a revision, a quantization or a file where wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from kaiwa.errors import InvalidOption
from kaiwa.weights import file_kinds

_PART = r"[A-Za-z0-9][\w.-]*"
_CHOICE = r":(?P<quantization>[\w.-]+)|/(?P<file>\S+\.gguf)"
_NAME = re.compile(rf"(?P<repo>{_PART}/{_PART})(@(?P<revision>[^:@\s]+?))?({_CHOICE})?")
_ADDRESS = re.compile(r"((https?://)?(www\.)?(huggingface\.co|hf\.co)/|hf://)(?P<path>[^?#]*)([?#].*)?")
_PAGE = re.compile(rf"(?P<repo>{_PART}/{_PART})/(tree|blob|resolve|raw)/(?P<revision>[^/]+)(/(?P<inside>.+))?")
EXPECTED = "org/name, org/name:Q4_K_M or org/name/file.gguf, with @revision after org/name where wanted"


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

    `org/name.gguf` is a path and no name. The address of a page or a file, as a browser shows it, is a name as well.

    Raises `InvalidOption` for a revision that cannot be one.
    """
    if address := _ADDRESS.fullmatch(text):
        text = _name_of_page(address["path"].strip("/"))
    found = _NAME.fullmatch(text)
    if found is None or ".." in text:
        return None
    file = found["file"] or ""
    if not file and not found["quantization"] and found["repo"].endswith(file_kinds.ENDINGS):
        return None
    name = HubName(found["repo"], found["revision"] or "main", found["quantization"] or "", file)
    if revision is not None:
        name = replace(name, revision=revision)
    _check_revision(name.revision)
    return name


def _name_of_page(path: str) -> str:
    """The name that the path of a page stands for: `org/name/blob/main/file.gguf`, `org/name/tree/main/Q4_K_M`."""
    page = _PAGE.fullmatch(path)
    if page is None:
        return unquote(path)
    repo = f"{page['repo']}@{unquote(page['revision'])}"
    inside = unquote(page["inside"] or "")
    if inside.endswith(".gguf"):
        return f"{repo}/{inside}"
    # Large repositories have a folder for each quantization; any other file stands for the model that it is part of.
    is_folder = bool(inside) and not inside.endswith(file_kinds.ENDINGS)
    return f"{repo}:{inside.rpartition('/')[2]}" if is_folder else repo


def _check_revision(revision: str) -> None:
    if not revision or ".." in revision or revision.startswith("/") or any(sign in revision for sign in " :@\\\0"):
        raise InvalidOption(f"revision={revision!r} is impossible", hint="it is a branch, a tag or a commit")
