"""Short names such as `qwen3:4b`: rows of a table that a person can extend."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaiwa import paths
from kaiwa.errors import UnusableFile
from kaiwa.weights.huggingface import hub_name
from kaiwa.weights.huggingface.hub_name import HubName

_OWN = Path(__file__).with_name("short_names.toml")
_KEYS = {"from", "options"}


@dataclass(frozen=True, slots=True)
class ShortName:
    """A row: where the model is, as a name on the hub or a path, and the options that its makers recommend."""

    source: HubName | Path
    options: Mapping[str, Any] = field(default_factory=dict)


def table_path() -> Path:
    """Where a person's own rows are."""
    return paths.home() / "models.toml"


def table() -> dict[str, ShortName]:
    """All rows, a person's own before ours.

    Raises `UnusableFile` where their file is not TOML, or a row of it says what no row can.
    """
    return {name: _row(_OWN, name, row) for name, row in _read(_OWN).items()} | {
        name: _row(table_path(), name, row) for name, row in _read(table_path()).items()
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnusableFile(path, "TOML", str(error), hint=_example("my-model")) from error


def _row(path: Path, name: str, row: Any) -> ShortName:
    source = row.get("from") if isinstance(row, dict) else None
    if not isinstance(source, str) or not set(row) <= _KEYS or not isinstance(row.get("options", {}), dict):
        raise UnusableFile(path, "TOML", f"the row {name!r} is {row!r}", hint=_example(name))
    hub = hub_name.parse(source)
    return ShortName(Path(source).expanduser() if hub is None else hub, row.get("options", {}))


def _example(name: str) -> str:
    return f'write ["{name}"] and below it from = "org/name:Q4_K_M", or the path of a model'
