"""Model families, one file each, named as `model_type` in `config.json`; a new file is a new family."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, cast

from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import UnsupportedModel

Record = Callable[[Program, Mapping[str, Any], Weights], None]


def known() -> list[str]:
    """The families that the built-in engine runs."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(family: str) -> Record:
    """The function that records this family's program. Raises `UnsupportedModel` that lists those we know."""
    if family not in known():
        raise UnsupportedModel(
            f"the built-in engine does not know the model family {family!r}",
            hint=f'it knows {", ".join(known())}; for others, engine="torch" will use transformers',
        )
    return cast(Record, importlib.import_module(f"{__name__}.{family}").record)
