"""Kaiwa's build backend: scikit-build-core, which also gets Node from PyPI where the machine has none for the page."""

from __future__ import annotations

from typing import Any

from node import WHEEL, machine_node
from scikit_build_core.build import *  # noqa: F403 - every hook but the two below is as it is there
from scikit_build_core.build import get_requires_for_build_editable as _for_editable
from scikit_build_core.build import get_requires_for_build_wheel as _for_wheel

_Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """What building a wheel needs."""
    return _for_wheel(config_settings) + _node()


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """What an editable installation needs."""
    return _for_editable(config_settings) + _node()


def _node() -> list[str]:
    return [] if machine_node() else [WHEEL]
