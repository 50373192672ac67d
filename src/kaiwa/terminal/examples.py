"""Questions to try a model with: what `!example NAME` asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kaiwa.errors import InvalidOption

EXAMPLES = {
    "llama": "How are llamas, alpacas and vicunas related, and how do I tell them apart?",
    "code": "Write a Python function that returns the n-th Fibonacci number without recursion, with a test for it.",
    "helicopter": "How many helicopters could a person eat in one sitting?",
    "numbers": "Count to ten, but leave out every number that has an e in its English name.",
    "numbers2": "Which of the two is more, 9.11 or 9.9?",
    "birds": "Why can some birds sleep while they fly?",
    "socks": "I have ten red and ten blue socks in a dark drawer. How many must I take out to be sure of a pair?",
    "story": "Begin a story in the rain, in three sentences.",
    "japanese": "自己紹介をしてください。",
}


def read(path: Path) -> dict[str, str]:
    """The questions of a YAML (or JSON) file: each name with its text, as it is or under `text`.

    Raises `InvalidOption` where the file cannot be read, or holds something else.
    """
    import yaml  # slow to import, and few have such a file

    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InvalidOption(f"{path} cannot be read as YAML: {error}", hint=_EXPECTED) from error
    if not isinstance(content, dict) or not content:
        raise InvalidOption(f"{path} holds no examples", hint=_EXPECTED)
    return {str(name): _text(path, name, example) for name, example in content.items()}


_EXPECTED = "write one example a line, as `name: the question`"


def _text(path: Path, name: object, example: Any) -> str:
    text = example.get("text") if isinstance(example, dict) else example
    if not isinstance(text, str) or not text.strip():
        raise InvalidOption(f"the example {name!r} of {path} is {example!r}, and no text", hint=_EXPECTED)
    return text
