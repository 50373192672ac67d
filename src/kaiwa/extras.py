"""Optional packages: imported when a feature needs them, or named in an error that says how to get them."""

from __future__ import annotations

import importlib
from types import ModuleType

from kaiwa.errors import MissingExtra


def require(module: str, *, feature: str, package: str = "", extra: str = "") -> ModuleType:
    """Import `module`, or raise `MissingExtra` that names the feature, the package and the command.

    `package` is its name on PyPI where that differs; `extra` is Kaiwa's own extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        wanted = f"'kaiwa[{extra}]'" if extra else package or module
        raise MissingExtra(
            f"{feature} needs the package {package or module}, which is not installed",
            hint=f"pip install {wanted}",
        ) from error
