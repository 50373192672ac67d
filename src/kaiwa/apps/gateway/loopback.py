"""The names of this machine."""

from __future__ import annotations

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
