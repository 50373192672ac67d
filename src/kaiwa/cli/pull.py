"""`kaiwa pull`: fetch a model, or bring it up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from kaiwa.events import Progress

SUMMARY = "Fetch a model, or bring it up to date."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from kaiwa.weights.huggingface.hub_name import EXPECTED

    parser.add_argument("model", metavar="MODEL", help=f"a short name (kaiwa models --known), or {EXPECTED}")
    parser.add_argument("--revision", metavar="NAME", help="a branch, a tag or a commit (default: main)")
    parser.epilog = "The hub's token, folder and address are those of HF_TOKEN, HF_HOME and HF_ENDPOINT."


def run(arguments: argparse.Namespace) -> int:
    """Fetch it; the path is all that is printed."""
    from kaiwa.terminal import loading
    from kaiwa.weights import hub

    def work(on_progress: Callable[[Progress], None]) -> Path:
        return hub.pull(arguments.model, revision=arguments.revision, on_progress=on_progress)

    print(loading.load(work))
    sys.stdout.flush()
    return 0
