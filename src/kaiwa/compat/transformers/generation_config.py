"""GenerationConfig: generation flags in one object, under transformers' names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaiwa.compat.transformers import flags

# What a generation_config.json carries besides flags.
_NOTES = ("transformers_version", "_from_model_config", "is_assistant")


class GenerationConfig:
    """Flags for `generate` and `pipeline`. Each is an attribute; those that were not set are None.

    Raises `InvalidOption` for a flag that neither transformers nor Kaiwa has, or that would have no effect.
    """

    def __init__(self, **given: Any) -> None:
        self._flags = {name: value for name, value in given.items() if name not in _NOTES}
        flags.read(self._flags)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GenerationConfig:
        """The flags of a dictionary."""
        return cls(**content)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> GenerationConfig:
        """The flags of a `generation_config.json`, or of the folder that has one."""
        file = Path(path)
        return cls(**json.loads((file / "generation_config.json" if file.is_dir() else file).read_text("utf-8")))

    def to_dict(self) -> dict[str, Any]:
        """The flags that are set."""
        return dict(self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._flags.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        flags.read({name: value})
        self._flags[name] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenerationConfig) and self._flags == other._flags

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return f"GenerationConfig({', '.join(f'{name}={value!r}' for name, value in self._flags.items())})"
