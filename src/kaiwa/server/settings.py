"""How a server is set up, checked before it opens a port."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from kaiwa.errors import InvalidOption

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
MAX_REQUESTS = 256
MIN_KEY_LENGTH = 8


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What may reach the server, and how much of it at once.

    Raises `InvalidOption` where other machines could use it without a key, or a value is impossible.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    api_keys: tuple[str, ...] = ()
    """Any of these opens the server; without one it answers this machine only."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of these origins ("https://example.org") may call the server."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which others call this machine, beside its own."""
    max_requests: int = MAX_REQUESTS
    """How many requests may be answered or wait at once; the next is told to come back."""
    max_body_bytes: int = 16 * 2**20
    max_json_depth: int = 64
    max_stored_bytes: int = 64 * 2**20
    """How much of `/v1/responses` is kept for `previous_response_id`; the oldest go first."""
    comment_every_s: float = 10.0
    """How long a stream is silent before a comment keeps the connection alive."""
    drain_s: float = 30.0
    """How long the answers under way may take after the server was asked to stop."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.api_keys:
            raise InvalidOption(
                f"the address {self.host} can be reached from other machines, and there is no key",
                hint="give --api-key or set KAIWA_API_KEY, or listen on 127.0.0.1",
            )
        if not 0 <= self.port <= 65535:
            raise InvalidOption(f"the port {self.port} is impossible", hint="it must be a number from 0 to 65,535")
        for key in self.api_keys:
            if len(key) < MIN_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
                raise InvalidOption(
                    f"an API key of {len(key)} characters cannot be used",
                    hint=f"it must have at least {MIN_KEY_LENGTH} letters, digits or signs, and no spaces",
                )
        for origin in self.allowed_origins:
            scheme, sign, host = origin.partition("://")
            if scheme not in ("http", "https") or not sign or not host or "/" in host or "*" in host:
                raise InvalidOption(
                    f"the origin {origin!r} is impossible",
                    hint='an origin is a scheme and a host, with a port or not: "https://example.org"',
                )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
