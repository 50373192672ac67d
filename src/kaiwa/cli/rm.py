"""`kaiwa rm`: remove models, and quantized weights."""

from __future__ import annotations

import argparse

SUMMARY = "Remove a model, or quantized weights, from disk."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="a model or quantized weights, as `kaiwa models` lists them"
    )


def run(arguments: argparse.Namespace) -> int:
    """Remove them one after the other; a name that is not there ends the row."""
    from kaiwa.terminal import words
    from kaiwa.weights import inventory

    for name in arguments.names:
        kept = {weights.name: weights for weights in inventory.quantized()}
        freed = inventory.remove_quantized(kept[name]) if name in kept else inventory.remove(inventory.find(name))
        print(f"removed {name}: {words.in_bytes(freed)} are free again")
    return 0
