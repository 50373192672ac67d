"""Stop strings: texts that end an answer, whatever pieces the answer arrives in."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Watches one answer for `stops`. Only what could begin one is held back.

    The one that is complete first counts, and of several complete at once the longest: so the pieces do not matter.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(filter(None, stops))
        self._held = ""
        self.met = ""
        """The one that was met."""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop string was met: it and what follows are cut off."""
        if self.met:
            return "", True
        self._held += text
        found = [(start + len(stop), start) for stop in self._stops if (start := self._held.find(stop)) >= 0]
        if found:
            end, start = min(found)
            self.met = self._held[start:end]
            shown, self._held = self._held[:start], ""
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
