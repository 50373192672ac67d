"""JSON as the server writes it: compact, and in UTF-8."""

from __future__ import annotations

import json
from json.encoder import encode_basestring as quoted
from typing import Any

__all__ = ["dumps", "quoted"]

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""The JSON text of a value."""


def encoded(value: Any) -> bytes:
    """The JSON text of a value, ready to be sent."""
    return dumps(value).encode()
