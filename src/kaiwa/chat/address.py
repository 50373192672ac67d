"""Addresses of servers, told from names and paths of models."""

from __future__ import annotations


def is_address(model: object) -> bool:
    """Whether it is the address of a server that speaks OpenAI's API, and no name or path."""
    return isinstance(model, str) and model.startswith(("http://", "https://")) and "huggingface.co/" not in model
