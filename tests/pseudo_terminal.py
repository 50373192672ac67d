"""A real pseudo-terminal with a screen that can be read: what a person would see."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte

ROWS, COLUMNS = 24, 80
TIMEOUT = 20.0


class PseudoTerminal:
    """A program at a terminal. Times in seconds."""

    def __init__(self, command: list[str], environment: dict[str, str], *, rows: int, columns: int) -> None:
        self._child = pexpect.spawn(
            command[0],
            command[1:],
            env={**os.environ, "TERM": "xterm-256color", **environment},  # type: ignore[arg-type]
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=20,
        )
        self._child.delaybeforesend = None
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""
        """Every character that the program wrote."""

    @property
    def display(self) -> str:
        """The rows on the screen."""
        return "\n".join(row.rstrip() for row in self._screen.display).rstrip()

    @property
    def everything(self) -> str:
        """The rows on the screen and those that scrolled out of it."""
        above = [
            "".join(row[column].data for column in range(self._screen.columns)) for row in self._screen.history.top
        ]
        return "\n".join(row.rstrip() for row in [*above, *self._screen.display]).rstrip()

    @property
    def title(self) -> str:
        """The window's title, where a program has set one."""
        return self._screen.title

    def type(self, keys: str) -> None:
        """Press keys, as the bytes that a terminal sends."""
        self._child.send(keys)

    def say(self, line: str) -> None:
        """Type a line and press Enter."""
        self._child.send(line)
        typed = "".join(line.split())[-10:]
        self.wait_until(lambda: typed in "".join(self.everything.split()), repr(line))
        self._child.send("\r")

    def wait_until(self, is_there: Callable[[], bool], what: str, timeout: float = TIMEOUT) -> None:
        """Read what the program writes until the screen is as expected."""
        deadline = time.monotonic() + timeout
        while not is_there():
            if time.monotonic() > deadline:
                raise AssertionError(f"after {timeout} s there is no {what} on the screen:\n{self.everything}")
            self._read(0.05)

    def wait_for(self, text: str, timeout: float = TIMEOUT) -> None:
        """Wait until the text is visible, wherever its lines are broken."""
        words = " ".join(text.split())
        self.wait_until(lambda: words in " ".join(self.everything.split()), repr(text), timeout)

    def wait_for_prompt(self, timeout: float = TIMEOUT) -> None:
        """Wait until the program waits for a line."""
        self.wait_until(lambda: self.display.split("\n")[-1].strip() == ">", "prompt", timeout)

    def wait_for_end(self, timeout: float = TIMEOUT) -> int:
        """Wait until the program has ended; its exit code, or minus the signal that ended it."""
        deadline = time.monotonic() + timeout
        while self._read(0.05):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {timeout} s the program still runs:\n{self.everything}")
        self._child.close()
        if self._child.exitstatus is not None:
            return int(self._child.exitstatus)
        return -int(self._child.signalstatus or 0)

    def send_signal(self, number: int) -> None:
        """Send the program a signal."""
        self._child.kill(number)

    def close(self) -> None:
        """End the program, whatever it does."""
        self._child.close(force=True)

    def _read(self, timeout: float) -> bool:
        """Read once; False where the program has ended."""
        try:
            text = self._child.read_nonblocking(65536, timeout)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += text
        self._stream.feed(text)
        if "\x1b[6n" in text:  # the program asks where the cursor is
            self._child.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
        return True


@contextmanager
def terminal(
    command: list[str], home: Path, *, rows: int = ROWS, columns: int = COLUMNS, **environment: str
) -> Iterator[PseudoTerminal]:
    """Run a command in a pseudo-terminal, with a folder of its own for what Kaiwa keeps."""
    running = PseudoTerminal(command, {"KAIWA_HOME": str(home), **environment}, rows=rows, columns=columns)
    try:
        yield running
    finally:
        running.close()
