"""The options that a `generation_config.json` asks for, wherever it is: a file, a folder, or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kaiwa.errors import InvalidOption
from kaiwa.weights import file_kinds, safetensors
from kaiwa.weights.huggingface import hub_name

FILE = "generation_config.json"


def read(name: str) -> dict[str, Any]:
    """What the file says; `name` is its path, the folder that has it, or a name on the hub (`org/name`).

    Raises `InvalidOption` where there is none, `UnusableFile` where it is no JSON object, and what the hub refuses.
    """
    path = Path(name).expanduser()
    if file_kinds.exists(path):
        return safetensors.read_json(path / FILE if path.is_dir() else path, FILE)
    repository = hub_name.parse(name)
    if repository is None:
        raise InvalidOption(
            f"there is no file or folder {name}",
            hint=f"pass the path of a {FILE}, its folder, or a name on the hub: org/name",
        )
    from kaiwa.weights.huggingface import repositories  # slow to import

    return safetensors.read_json(repositories.fetch_file(repository, FILE), FILE)
