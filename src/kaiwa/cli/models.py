"""`kaiwa models`: what is on disk."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaiwa.weights.description import Description
    from kaiwa.weights.inventory import Model, QuantizedWeights

SUMMARY = "List the models on this machine."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from kaiwa.weights import short_names

    parser.add_argument("--known", action="store_true", help="list the short names that can be fetched instead")
    parser.add_argument("--json", action="store_true", help="print JSON, with all that is known")
    parser.epilog = f"{short_names.table_path()} may add short names; docs/models.md says how."


def run(arguments: argparse.Namespace) -> int:
    """Print the list."""
    if arguments.known:
        rows = _known()
        print(json.dumps(rows, indent=2) if arguments.json else _known_table(rows))
        return 0
    from kaiwa.weights import inventory

    found = [(model, _describe(model)) for model in inventory.models()]
    kept = inventory.quantized()
    if arguments.json:
        content = {
            "models": [_to_dict(model, description) for model, description in found],
            "quantized": [
                {"name": weights.name, "source": str(weights.source), "bytes": weights.num_bytes} for weights in kept
            ],
        }
        print(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        print(_table(found, kept))
    return 0


def _describe(model: Model) -> Description | None:
    """What the model is, or None where its file was damaged since it was fetched."""
    from kaiwa.errors import KaiwaError
    from kaiwa.weights.description import describe

    try:
        return describe(model.path)
    except KaiwaError:
        return None


def _to_dict(model: Model, description: Description | None) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": model.name,
        "short_name": model.short_name,
        "path": str(model.path),
        "bytes": model.num_bytes,
        "used_at": model.used_at,
        "licence": model.licence,
        "source": model.source,
        **(asdict(description) if description else {"problem": "damaged"}),
    }


def _table(found: list[tuple[Model, Description | None]], kept: list[QuantizedWeights]) -> str:
    from kaiwa.terminal import words
    from kaiwa.terminal.table import aligned

    if not found and not kept:
        return "no model is here yet; `kaiwa models --known` lists names, `kaiwa pull NAME` fetches one"
    lines = []
    if found:
        columns = [["model"], ["size"], ["format"], ["family"], ["context"], ["last used"]]
        for model, what in found:
            cells = (
                model.names[0],
                words.in_bytes(model.num_bytes),
                what.number_format if what else "damaged",
                what.family if what else "",
                f"{what.context_length:,}" if what and what.context_length else "",
                words.ago(model.used_at),
            )
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
        lines += aligned(columns, left=(0, 2, 3, 5))
    if kept:
        names = ["quantized weights, made again when needed", *(weights.name for weights in kept)]
        sizes = ["size", *(words.in_bytes(weights.num_bytes) for weights in kept)]
        lines += [*([""] if lines else []), *aligned([names, sizes])]
    return "\n".join(lines)


def _known() -> list[dict[str, str]]:
    from kaiwa.weights import hub, short_names

    packaged = {name: f"the package {source.package}" for name, source in hub.MODELS.items()}
    rows = packaged | {name: str(row.source) for name, row in short_names.table().items()}
    return [{"name": name, "source": source} for name, source in sorted(rows.items())]


def _known_table(rows: list[dict[str, str]]) -> str:
    from kaiwa.terminal.table import aligned

    names, sources = ["name"], ["what it stands for"]
    for row in rows:
        names.append(row["name"])
        sources.append(row["source"])
    return "\n".join(aligned([names, sources], left=(0, 1)))
