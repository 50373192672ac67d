"""A memory of what was there recently: a set that forgets its oldest members."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class Recently:
    """Up to `max_entries` members, the newest."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[Hashable, None] = OrderedDict()

    def add(self, entry: Hashable) -> None:
        """Remember it."""
        self._entries[entry] = None
        self._entries.move_to_end(entry)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def forget(self, entry: Hashable) -> None:
        """Remember it no longer."""
        self._entries.pop(entry, None)

    def __contains__(self, entry: Hashable) -> bool:
        return entry in self._entries
