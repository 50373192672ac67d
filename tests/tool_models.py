"""Models without weights that call tools: Qwen3's template, bytes as tokens, and a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.llm import LLM
from kaiwa.text.templates.chat_template import ChatTemplate
from marked_tokens import END, ids_of, tokenizer

MARKERS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
QWEN3 = (Path(__file__).parent / "golden" / "text" / "templates" / "qwen3.jinja").read_text(encoding="utf-8")
TOKENS = tokenizer(MARKERS)


def qwen(answer: Callable[[str], str], **options: Any) -> LLM:
    """A model that answers a prompt as `answer` says. Markers in what it says are tokens."""

    def say(ids: Sequence[int]) -> list[int]:
        return ids_of(TOKENS, answer(TOKENS.decode(ids)))

    engine = ScriptedEngine(say, end_id=END, vocab_size=TOKENS.vocab_size)
    return LLM.from_parts(engine, TOKENS, ChatTemplate.of(TOKENS, QWEN3), name="qwen", **options)


def says(text: str, **options: Any) -> LLM:
    """A model that always says the same."""
    return qwen(lambda prompt: text, **options)


def call(name: str, **arguments: Any) -> str:
    """How the model calls a tool."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'
