"""Chat apps beside Chainlit: the same app, the same machine, in turn.

    python -m venv /tmp/chainlit && /tmp/chainlit/bin/pip install chainlit==2.12.0 "python-socketio[asyncio_client]"
    python benchmarks/apps.py --chainlit /tmp/chainlit/bin/python    # about two minutes
    python benchmarks/apps.py                                        # Kaiwa alone

The servers are processes of their own, and so are their pages; what counts of a server is its processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
CLIENT = HERE / "chat_client.py"
NUM_TOKENS = {"kaiwa": 20_000, "chainlit": 2_000}
"""Of one answer: enough that the clock of processor time, which ticks a hundred times a second, can tell."""
NUM_RETURNED = 1_000
NUM_IDLE = 200
NUM_SOCKETS = 2_000
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Framework:
    """A way to serve the app: `name`, the Python that has it, and the words after that."""

    name: str
    python: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """One that answers."""

    framework: Framework
    port: int
    pid: int
    start_s: float
    start_cpu_s: float

    def cpu_s(self) -> float:
        """The processor time that it has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """What of it is in memory."""
        (line,) = (line for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if "VmRSS" in line)
        return int(line.split()[1]) * 1024

    def ask(self, task: str, number: int) -> dict[str, Any]:
        """Let a page do something, and tell what came of it."""
        command = [self.framework.python, str(CLIENT), self.framework.name, str(self.port), task, str(number)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        return dict(json.loads(told.stdout.splitlines()[0]))

    @contextmanager
    def with_idle_chats(self, number: int) -> Iterator[None]:
        """So many pages that look at a chat each, for the length of a `with` block."""
        command = [self.framework.python, str(CLIENT), self.framework.name, str(self.port), "idle", str(number)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as pages:
            assert pages.stdout is not None
            assert json.loads(pages.stdout.readline()) == {"num_chats": number}
            yield
            pages.kill()


@contextmanager
def serving(framework: Framework) -> Iterator[Server]:
    """The app at work, once it has given its page."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "app.py"
        app.write_text((HERE / "chat_apps" / f"{framework.name}_app.py").read_text())
        environment = os.environ | {"KAIWA_HOME": folder}
        begun_at = time.perf_counter()
        command = [framework.python, *framework.words, str(app), "--headless", "--port", str(port)]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                _await_page(port, begun_at + PATIENCE_S)
                server = Server(framework, port, process.pid, time.perf_counter() - begun_at, 0.0)
                yield Server(framework, port, process.pid, server.start_s, server.cpu_s())
            finally:
                process.terminate()


def _await_page(port: int, until: float) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                answer.read()
                return
        except OSError:
            assert time.perf_counter() < until, "the app did not start"
            time.sleep(0.005)


def measure(framework: Framework) -> dict[str, float]:
    """One round with this framework."""
    with serving(framework) as server:
        server.ask("stream", 200)  # what is done for the first time does not count
        num_tokens = NUM_TOKENS[framework.name]
        before_s = server.cpu_s()
        seconds = server.ask("stream", num_tokens)["seconds"]
        cpu_s = server.cpu_s() - before_s
        before_bytes = server.memory_bytes()
        with server.with_idle_chats(NUM_IDLE):
            time.sleep(0.5)
            idle_bytes = (server.memory_bytes() - before_bytes) / NUM_IDLE
        return {
            "start, s": server.start_s,
            "start, processor s": server.start_cpu_s,
            "memory at the start, MB": before_bytes / 1e6,
            "tokens per processor second": num_tokens / cpu_s,
            "tokens per second": num_tokens / seconds,
            "memory per idle chat, KB": idle_bytes / 1e3,
        }


def measure_alone(framework: Framework) -> dict[str, float]:
    """What only Kaiwa promises: many sockets at once, and nothing lost by a lost connection."""
    with serving(framework) as server:
        returned = server.ask("return", NUM_RETURNED)
        before_bytes = server.memory_bytes()
        with server.with_idle_chats(NUM_SOCKETS):
            num_open = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
            held_bytes = (server.memory_bytes() - before_bytes) / NUM_SOCKETS
            seconds = server.ask("stream", 2_000)["seconds"]
        return {
            "caught up after a lost connection, s": returned["caught_up_s"],
            "tokens lost by it": NUM_RETURNED - returned["num_words"],
            "files and sockets with 2,000 pages": num_open,
            "memory per page of 2,000, KB": held_bytes / 1e3,
            "2,000 tokens beside 2,000 pages, s": seconds,
        }


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The middle of several rounds, number by number."""
    return {name: median(one[name] for one in rounds) for name in rounds[0]}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chainlit", metavar="PYTHON", help="the Python of an environment with Chainlit")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    frameworks = [Framework("kaiwa", sys.executable, ("-m", "kaiwa.cli.main", "run"))]
    if arguments.chainlit:
        frameworks.append(Framework("chainlit", arguments.chainlit, ("-m", "chainlit", "run")))
    rounds: dict[str, list[dict[str, float]]] = {framework.name: [] for framework in frameworks}
    for _ in range(arguments.rounds):
        for framework in frameworks:
            rounds[framework.name].append(measure(framework))
    columns = {name: medians(of) for name, of in rounds.items()}
    _print(columns)
    for name, value in measure_alone(frameworks[0]).items():
        print(f"{name:38} {value:12,.2f}")


def _print(columns: dict[str, dict[str, float]]) -> None:
    has_peer = "chainlit" in columns
    print(f"{'':38} " + " ".join(f"{name:>12}" for name in (*columns, *(["ratio"] if has_peer else []))))
    for name, own in columns["kaiwa"].items():
        values = [f"{column[name]:12,.2f}" for column in columns.values()]
        if has_peer:
            values.append(f"{own / columns['chainlit'][name]:10.2f} x")
        print(f"{name:38} " + " ".join(values))


if __name__ == "__main__":
    main()
