"""Ids of what the server makes."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """An id that nobody can guess and that is in no other place."""
    return secrets.token_urlsafe(12)
