"""The process that llama.cpp lives in: `python -m kaiwa.engines.llama_cpp_child`, for `engines.llama_cpp`.

Reads its settings as one line of JSON from standard input, so that the key is in no list of processes; writes the
address that its server listens on; and ends with its parent, which closes standard input.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kaiwa.extras import require


def main() -> None:
    """Serve until standard input ends."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    xllamacpp = require("xllamacpp", feature="the llama.cpp engine", extra="llama-cpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings["path"]
    parameters.api_keys = [settings["key"]]
    parameters.n_ctx = settings["context_length"] or 0
    parameters.n_parallel = settings["max_running"]
    if settings["threads"]:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings["threads"]
    parameters.verbosity = 0
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
