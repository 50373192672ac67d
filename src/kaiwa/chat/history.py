"""Conversations on disk: one JSON file each.

    {"kaiwa_chat": 1, "model": "smollm2:135m", "settings": {"temperature": 0.2, …}, "messages": [{"role": …}, …]}

`settings` are all sampling options as they were in force; `messages` are in the words of the OpenAI API.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kaiwa.chat.conversation import Chat
from kaiwa.errors import InvalidMessages, InvalidOption, KaiwaError, UnusableFile, did_you_mean
from kaiwa.sampling import Sampling

VERSION = 1
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_NAME_LETTERS = 40
_KEYS = ("kaiwa_chat", "model", "settings", "messages")


@dataclass(frozen=True, slots=True)
class SavedChat:
    """What a file holds. `model` is the name of the model that answered."""

    model: str
    sampling: Sampling
    chat: Chat

    def options_beside(self, own: Sampling) -> dict[str, Any]:
        """The options that differ from those that a model has by itself."""
        before = own.to_dict()
        return {name: value for name, value in self.sampling.to_dict().items() if value != before[name]}


def default_path(chat: Chat, now: datetime, folder: Path) -> Path:
    """A free file in a folder of saved chats, named by time and first question: `2026-11-30-1620-hi.json`."""
    words = _safe_name(chat.turns[0].question if chat.turns else "")
    stem = f"{now:%Y-%m-%d-%H%M}" + (f"-{words}" if words else "")
    path = folder / f"{stem}.json"
    count = 1
    while path.exists():
        count += 1
        path = folder / f"{stem}-{count}.json"
    return path


def _safe_name(text: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in text).split()
    name = ""
    for word in words:
        if name and len(name) + 1 + len(word) > MAX_NAME_LETTERS:
            break
        name = f"{name}-{word}" if name else word[:MAX_NAME_LETTERS]
    return name.lower()


def typed_path(name: str) -> Path:
    """The file that a person means by `name`; `.json` is added where there is no suffix."""
    path = Path(name).expanduser()
    return path if path.suffix else path.with_name(path.name + ".json")


def save(path: Path, saved: SavedChat, *, overwrite: bool = False) -> None:
    """Write a conversation, whole or not at all.

    Raises `KaiwaError` where the file exists and `overwrite` is False, or where it cannot be written.
    """
    if path.exists() and not overwrite:
        raise KaiwaError(f"{path} exists already", hint="choose another name")
    data = {
        "kaiwa_chat": VERSION,
        "model": saved.model,
        "settings": saved.sampling.to_dict(),
        "messages": saved.chat.to_dicts(),
    }
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise KaiwaError(f"{path} cannot be written: {error.strerror or error}") from error


def _write_whole(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def find(name: str, folder: Path) -> Path:
    """The file that a person means by `name`: a path, or a file in a folder of saved chats.

    Raises `KaiwaError` that offers the nearest saved name.
    """
    for path in (Path(name).expanduser(), typed_path(name), folder / typed_path(name).name):
        if path.is_file():
            return path
    names = saved_names(folder)
    hint = did_you_mean(typed_path(name).name, names[:5]) if names else f"saved chats are kept in {folder}"
    raise KaiwaError(f"there is no saved chat {name!r}", hint=hint)


def saved_names(folder: Path) -> list[str]:
    """File names in a folder of saved chats, newest first."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if path.suffix == ".json" and not path.name.startswith(".")]
    return [path.name for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)]


def load(path: Path) -> SavedChat:
    """Read a conversation. Raises `UnusableFile` with the reason for anything that `save` does not write."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _unusable(path, f"it is larger than {MAX_FILE_BYTES:,} bytes")
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"it is not JSON ({error})") from error
    try:
        return _checked(path, data)
    except (InvalidMessages, InvalidOption) as error:
        raise _unusable(path, str(error), hint=error.hint) from error


def _checked(path: Path, data: Any) -> SavedChat:
    if not isinstance(data, Mapping) or "kaiwa_chat" not in data:
        raise _unusable(path, "it does not say that it is one: 'kaiwa_chat' is missing")
    if data["kaiwa_chat"] != VERSION:
        raise _unusable(path, f"it has version {data['kaiwa_chat']!r}, and this Kaiwa reads version {VERSION}")
    for key in _KEYS:
        if key not in data:
            raise _unusable(path, f"{key!r} is missing")
    for key in data:
        if key not in _KEYS:
            raise _unusable(path, f"it has {key!r}", hint=did_you_mean(key, _KEYS))
    if not isinstance(data["model"], str):
        raise _unusable(path, f"'model' is {data['model']!r}, not a name")
    if not isinstance(data["settings"], Mapping):
        raise _unusable(path, "'settings' is not an object of options")
    if not isinstance(data["messages"], list):
        raise _unusable(path, "'messages' is not a list")
    return SavedChat(data["model"], Sampling().updated(data["settings"]), Chat.from_dicts(data["messages"]))


def _unusable(path: Path, reason: str, *, hint: str = "") -> UnusableFile:
    return UnusableFile(path, "chat", reason, hint=hint)
