"""Server-sent events: the `data` of each, out of pieces of any size. https://html.spec.whatwg.org/#event-stream."""

from __future__ import annotations

from kaiwa.errors import RemoteFailed

MAX_EVENT_BYTES = 16 << 20
"""No event of an answer is longer; a server that sends more is not speaking this language."""


class EventStream:
    """Takes bytes as they come and gives the data of every event that is whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def push(self, piece: bytes) -> list[str]:
        """The data of the events that this piece completes. Raises `RemoteFailed` for an event without end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        found = [data for line in lines if (data := self._line(line)) is not None]
        if len(self._rest) + sum(map(len, self._data)) > MAX_EVENT_BYTES:
            raise RemoteFailed(f"the server sent an event that is longer than {MAX_EVENT_BYTES:,} bytes")
        return found

    def finish(self) -> list[str]:
        """The data of an event that the connection's end completes."""
        rest, self._rest = self._rest, b""
        found = [self._line(rest), self._line(b"")]
        return [data for data in found if data is not None]

    def _line(self, line: bytes) -> str | None:
        line = line.removesuffix(b"\r")
        if not line:
            data, self._data = b"\n".join(self._data), []
            return data.decode(errors="replace") if data else None
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
