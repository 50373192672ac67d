"""Stop strings: texts that end an answer, whatever pieces the answer arrives in."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Watches one answer for the first of `stops`. Only what could begin one is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(filter(None, stops))
        self._held = ""
        self._is_met = False

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop string was met: it and what follows are cut off."""
        if self._is_met:
            return "", True
        self._held += text
        found = [position for stop in self._stops if (position := self._held.find(stop)) >= 0]
        if found:
            self._is_met = True
            shown, self._held = self._held[: min(found)], ""
            return shown, True
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown, False

    def flush(self) -> str:
        """What was held back, when the answer ends without a stop string."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` begin `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if text.endswith(stop[:length])), 0)
