"""llama.cpp's own server, in a process of its own: a second implementation of OpenAI's API, for tests."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from required import absent

KEY = "a-key-for-tests"
_PROGRAM = """
import sys, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.api_keys, parameters.n_ctx = sys.argv[1], [sys.argv[2]], int(sys.argv[3])
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.verbosity = -1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def llama_server(model: Path, *, context_length: int = 1024) -> Iterator[str]:
    """The address of a server with this model, until the end of the block."""
    if importlib.util.find_spec("xllamacpp") is None:
        absent("xllamacpp is not installed")
    command = [sys.executable, "-c", _PROGRAM, str(model), KEY, str(context_length)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()
