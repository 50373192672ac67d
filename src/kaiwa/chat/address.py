"""Addresses of servers, told from names and paths of models."""

from __future__ import annotations

import re

_SERVER = re.compile(r"https?://(?!(www\.)?(huggingface\.co|hf\.co)(/|$))")
"""The hub's addresses are those of models."""


def is_address(model: object) -> bool:
    """Whether it is the address of a server that speaks OpenAI's API, and no name or path."""
    return isinstance(model, str) and _SERVER.match(model) is not None
