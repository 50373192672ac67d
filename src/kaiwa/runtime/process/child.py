"""A child process of Kaiwa's: how it begins, how it is spoken to, and how it ended."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any

from kaiwa.runtime.process.channel import Channel, pack
from kaiwa.runtime.process.wire import VERSION

OTHER_VERSION_EXIT_CODE = 79
PATIENCE_S = 3.0
"""How long a process that was asked to end may take."""
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from kaiwa.runtime.process.worker import main; main({descriptor}, {version!r})"
)


class Child:
    """A process that runs `kaiwa.runtime.process.worker`, and our end of the channel to it.

    It inherits its end of a socket pair and no other descriptor, and notices there when this process ends, however
    that comes about. It is a session of its own, so that a Ctrl-C in the terminal is not its business.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = [entry for entry in sys.path if isinstance(entry, str)]
        program = _PROGRAM.format(path=path, descriptor=theirs.fileno(), version=VERSION)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", program],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # ours is for data, and never for what a library prints
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self.pid = self._process.pid
        self._channel = Channel(ours)
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="kaiwa-process-writer", daemon=True)
        self._writer.start()

    def send(self, message: object) -> None:
        """Never waits. Where the process is gone, `receive` tells of it. Raises what `pack` raises."""
        self._outbox.put(pack(message))

    def receive(self, timeout_s: float | None = None) -> list[Any] | None:
        """As `Channel.receive`."""
        return self._channel.receive(timeout_s)

    def end(self) -> None:
        """Let `receive` return None, and the process notice that nobody listens."""
        self._channel.end()

    def reap(self) -> int:
        """Wait for the process to end, kill it if need be, and give everything back; its exit code."""
        self._channel.end()
        try:
            exit_code = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            exit_code = self._process.wait()
        self._outbox.put(None)
        self._writer.join()
        self._channel.close()
        return exit_code

    def kill(self) -> int:
        """End the process at once; as `reap`."""
        self._process.kill()
        return self.reap()

    def _write(self) -> None:
        """A thread, because the event loop that sends must not wait for a process that is busy."""
        while (message := self._outbox.get()) is not None:
            self._channel.send_packed(message)


def words_for(exit_code: int) -> str:
    """How a process ended: "was killed by SIGKILL", "ended with the exit code 1"."""
    if exit_code >= 0:
        return f"ended with the exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"
