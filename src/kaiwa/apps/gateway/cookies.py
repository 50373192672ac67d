"""Sealed cookies: anybody may read them, and nobody but the server can make them. HMAC-SHA256 over JSON."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any, cast


class Seal:
    """Makes and checks cookies with a secret that is kept in a file, or in `KAIWA_AUTH_SECRET`."""

    def __init__(self, folder: Path) -> None:
        chosen = os.environ.get("KAIWA_AUTH_SECRET")
        self._secret = chosen.encode() if chosen else _kept_secret(folder / "secret")
        # Cookies know no ports: apps on one machine would take each other's.
        self._suffix = hashlib.sha256(self._secret).hexdigest()[:8]

    def name(self, kind: str) -> str:
        """What a cookie of this kind is called."""
        return f"kaiwa_{kind}_{self._suffix}"

    def close(self, content: dict[str, Any]) -> str:
        """The content as a cookie's value."""
        body = base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()
        return f"{body}.{self._sign(body)}"

    def open(self, value: str | None) -> dict[str, Any] | None:
        """The content of a value that this server made; None for any other."""
        body, _, signature = (value or "").rpartition(".")
        if not body or not hmac.compare_digest(self._sign(body), signature):
            return None
        try:
            return cast(dict[str, Any], json.loads(base64.urlsafe_b64decode(body)))
        except (ValueError, binascii.Error):
            return None

    def _sign(self, body: str) -> str:
        return hmac.new(self._secret, body.encode(), hashlib.sha256).hexdigest()


def _kept_secret(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        secret = secrets.token_bytes(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        return secret
