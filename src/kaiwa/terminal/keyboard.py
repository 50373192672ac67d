"""What reaches the chat beside lines: Ctrl-C, keys typed while an answer is written, the end of the terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class StopKey:
    """Ctrl-C as a question, not an exception: pressed once, `was_pressed`; pressed again, `KeyboardInterrupt`.

    The exception would strike anywhere, in the middle of a row or of the model's own work. The second press is for a
    model that does not come back.
    """

    def __init__(self) -> None:
        self.was_pressed = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.was_pressed:
            raise KeyboardInterrupt
        self.was_pressed = True


@contextmanager
def orderly_end() -> Iterator[None]:
    """Make `SystemExit` of a closed terminal or a request to end, so that what must be kept is kept."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def held_keys() -> Iterator[None]:
    """Keep what is typed off the screen and as it was typed, until the next prompt reads it.

    Also after Ctrl-Z: a shell gives the terminal back as it likes it.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    _hold_keys()
    handler = signal.signal(signal.SIGCONT, lambda number, frame: _hold_keys())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, handler)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _hold_keys() -> None:
    import termios

    descriptor = sys.stdin.fileno()
    held = termios.tcgetattr(descriptor)
    held[0] &= ~termios.ICRNL  # Enter stays Enter
    held[3] &= ~(termios.ECHO | termios.ICANON)
    held[3] |= termios.NOFLSH  # Ctrl-C does not throw away what was typed
    termios.tcsetattr(descriptor, termios.TCSADRAIN, held)
