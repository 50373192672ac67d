"""What is on disk: models that Kaiwa fetched, and quantized weights that it made of models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kaiwa.errors import ModelNotFound, did_you_mean
from kaiwa.weights import hub, quantized_cache, short_names
from kaiwa.weights.huggingface import folders, receipts
from kaiwa.weights.huggingface.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Model:
    """A model that was fetched. `used_at` is when it was last asked for, in seconds since 1970."""

    name: str
    short_name: str
    path: Path
    num_bytes: int
    used_at: float
    licence: str = ""
    source: str = ""
    """Where it came from: the repository and its commit, or the package."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that a person may call it."""
        return tuple(dict.fromkeys(name for name in (self.short_name, self.name) if name))


@dataclass(frozen=True, slots=True)
class QuantizedWeights:
    """Weights that were rounded once and kept for the next start. `source` is the model they were made of."""

    name: str
    source: Path
    path: Path
    num_bytes: int
    used_at: float


def models() -> list[Model]:
    """All models that were fetched and are whole, the one that was used last first."""
    short = {str(row.source): name for name, row in short_names.table().items()}
    whole = [receipt for receipt in receipts.all_receipts() if receipt.is_whole()]
    fetched = [_of_receipt(receipt, short.get(receipt.name, "")) for receipt in whole]
    return sorted([*_packaged(), *fetched], key=lambda model: -model.used_at)


def find(name: str) -> Model:
    """The model of a short name or a name on the hub. Raises `ModelNotFound` for one that is not on disk."""
    receipt = None if name in hub.MODELS else hub.receipt_of(name)
    wanted = receipt.name if receipt else name
    for model in models():
        if wanted in model.names:
            return model
    known = [known for model in models() for known in model.names]
    raise ModelNotFound(
        f"{name!r} is not on this machine", hint=did_you_mean(name, known) if known else "nothing is, so far"
    )


def quantized() -> list[QuantizedWeights]:
    """All quantized weights that are kept."""
    found = []
    for note in sorted(quantized_cache.folder().glob("*/*/note.json")):
        folder = note.parents[1]
        try:
            source = Path(json.loads(note.read_text())["source"])
            num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            used_at = max(path.stat().st_atime for path in note.parent.iterdir())
        except (OSError, ValueError, LookupError, TypeError):
            continue  # damaged, or being made: its own model's next start sees to it
        found.append(QuantizedWeights(folder.name, source, folder, num_bytes, used_at))
    return found


def remove(model: Model) -> int:
    """Remove a model with the quantized weights that were made of it; the bytes that are free again."""
    freed = 0
    for weights in quantized():
        if weights.source == model.path.resolve():
            freed += remove_quantized(weights)
    receipt = None if model.name in hub.MODELS else hub.receipt_of(model.name)
    if receipt is None:
        shutil.rmtree(model.path.parent)
        return freed + model.num_bytes
    receipt.discard()
    others = [other for other in receipts.all_receipts() if other.folder == receipt.folder]
    shared = {name for other in others for name in other.files}
    names = [name for name in receipt.files if name not in shared]
    return freed + folders.folder(receipt.repo).remove(receipt.commit, names)


def remove_quantized(weights: QuantizedWeights) -> int:
    """Remove quantized weights, which are made again when they are needed; the bytes that are free again."""
    shutil.rmtree(weights.path)
    return weights.num_bytes


def _packaged() -> Iterator[Model]:
    for name, source in hub.MODELS.items():
        folder = hub.packaged_folder(name)
        if source.is_in(folder):
            yield Model(
                name=name,
                short_name=name,
                path=folder / source.file_name,
                num_bytes=source.num_bytes,
                used_at=source.note(folder).stat().st_mtime,
                licence=source.licence,
                source=f"the package {source.package} {source.version}",
            )


def _of_receipt(receipt: Receipt, short_name: str) -> Model:
    return Model(
        name=receipt.name,
        short_name=short_name,
        path=receipt.path,
        num_bytes=receipt.num_bytes,
        used_at=receipt.used_at,
        licence=receipt.licence,
        source=f"{receipt.repo} at {receipt.commit[:12]}",
    )
