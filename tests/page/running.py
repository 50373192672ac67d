"""An app as people run it: `kaiwa run` in a process of its own, which can be ended and begun again at its address."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

APPS = Path(__file__).parent / "apps"
PATIENCE_S = 30.0


class RunningApp:
    """`kaiwa run FILE`, with its chats in `home`."""

    def __init__(self, file: Path, home: Path) -> None:
        self._file = file
        self._home = home
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self.lines: list[str] = []
        self.start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self._port}/"

    def start(self) -> None:
        """Begin, and wait until it answers."""
        command = [sys.executable, "-m", "kaiwa.cli.main", "run", str(self._file), "--headless"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "KAIWA_HOME": str(self._home)},
        )
        is_up = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self._process, is_up), name="app output")
        self._reader.start()
        if not is_up.wait(PATIENCE_S):
            self.stop()
            raise AssertionError("the app did not start:\n" + "".join(self.lines))

    def stop(self) -> None:
        """End it, as a server ends that loses its power."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read(self, process: subprocess.Popen[str], is_up: threading.Event) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.lines.append(line)
            if re.search(r" is at http", line):
                is_up.set()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
