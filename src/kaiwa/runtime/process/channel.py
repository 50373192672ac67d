"""A channel: Python objects over a socket, between two processes of ours that trust each other."""

from __future__ import annotations

import contextlib
import pickle
import select
import socket
import struct
import threading
from collections import deque
from typing import Any

_SIZE = struct.Struct(">I")
_CHUNK_BYTES = 1 << 18


def pack(message: object) -> bytes:
    """The bytes of a message. Raises `TypeError` or `PicklingError` where it cannot cross."""
    body = pickle.dumps(message, protocol=5)
    return _SIZE.pack(len(body)) + body


class Channel:
    """One end. Any thread may send; one receives.

    What many threads send at once leaves in one piece, and what one sends alone leaves at once.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._outbox: deque[bytes] = deque()
        self._mutex = threading.Lock()
        self._inbox = bytearray()
        self._piece = memoryview(bytearray(_CHUNK_BYTES))  # kept, as a new one each time costs more than what it holds

    def send(self, message: object) -> None:
        """Waits while the other end reads slower than messages come. Where it is gone, `receive` tells of it.

        Raises what `pack` raises.
        """
        self.send_packed(pack(message))

    def send_packed(self, message: bytes) -> None:
        """As `send`, of what `pack` gave."""
        self._outbox.append(message)
        self.flush()

    def leave(self, message: object) -> None:
        """Let a message go along with the next that is sent, or with `flush`. Raises what `pack` raises."""
        self._outbox.append(pack(message))

    def flush(self) -> None:
        """Send what was left. Waits as `send` does."""
        # Whoever holds the lock looks again after letting go, and sends what others left meanwhile.
        while self._outbox and self._mutex.acquire(blocking=False):
            try:
                self._send_outbox()
            finally:
                self._mutex.release()

    def receive(self, timeout_s: float | None = None) -> list[Any] | None:
        """All messages that have arrived, at least one; none after `timeout_s`; None when the other end is gone."""
        while not (messages := self._parse()):
            if timeout_s is not None and not self._is_readable(timeout_s):
                return []
            try:
                num_bytes = self._socket.recv_into(self._piece)
            except OSError:  # reset, or closed here by another thread
                return None
            if num_bytes == 0:
                return None
            self._inbox += self._piece[:num_bytes]
        return messages

    def end(self) -> None:
        """Nothing crosses any more; whoever receives at either end gets None. Never waits."""
        with contextlib.suppress(OSError):  # the other end is gone already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back. Nobody may be receiving."""
        self._socket.close()

    def _send_outbox(self) -> None:
        pieces = []
        while self._outbox:
            pieces.append(self._outbox.popleft())
        with contextlib.suppress(OSError):
            self._socket.sendall(b"".join(pieces))

    def _parse(self) -> list[Any]:
        messages, place = [], 0
        while place + _SIZE.size <= len(self._inbox):
            (size,) = _SIZE.unpack_from(self._inbox, place)
            end = place + _SIZE.size + size
            if end > len(self._inbox):
                break
            messages.append(pickle.loads(memoryview(self._inbox)[place + _SIZE.size : end]))
            place = end
        del self._inbox[:place]
        return messages

    def _is_readable(self, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
