"""Responses that are kept for the next turn: as many as fit, the oldest go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kaiwa.server.json_text import encoded


@dataclass(frozen=True, slots=True)
class Kept:
    """A response, and the conversation up to its end without its instructions."""

    response: dict[str, Any]
    turns: Sequence[dict[str, Any]]
    num_bytes: int


class Store:
    """Responses by their ids. Whoever has another key does not see them."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def put(self, client: str, response: dict[str, Any], turns: Sequence[dict[str, Any]]) -> None:
        """Keep a response; one that is larger than all there is room for is not kept."""
        kept = Kept(response, turns, len(encoded([response, turns])))
        self._kept[client, response["id"]] = kept
        self._num_bytes += kept.num_bytes
        while self._num_bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._num_bytes -= oldest.num_bytes

    def find(self, client: str, response_id: str) -> Kept | None:
        """A response, if it is still kept; it is then the newest."""
        kept = self._kept.get((client, response_id))
        if kept is not None:
            self._kept.move_to_end((client, response_id))
        return kept

    def remove(self, client: str, response_id: str) -> bool:
        """Forget a response; whether it was kept."""
        kept = self._kept.pop((client, response_id), None)
        if kept is not None:
            self._num_bytes -= kept.num_bytes
        return kept is not None
