"""The options of sampling as help lists them: what each means, what it may be, and its default."""

from __future__ import annotations

import textwrap

from kaiwa.sampling import GROUPS, Option, Sampling, find

_INDENT, _LEAST_WIDTH = 26, 30


def options_help(width: int) -> list[str]:
    """Lines of at most `width` letters, group by group."""
    lines = []
    for title, names in GROUPS.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += _rows(find(name), width)
    return lines[1:]


def _rows(option: Option, width: int) -> list[str]:
    default = "" if option.kind in ("strings", "biases") else Sampling().to_dict()[option.name]
    left = f"  {option.name}={default}"
    words = textwrap.wrap(f"{option.help} ({option.range})", max(width - _INDENT, _LEAST_WIDTH))
    return [f"{text:{_INDENT}}{line}" for text, line in zip([left, *[""] * len(words)], words, strict=False)]
