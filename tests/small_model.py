"""A model without weights: every byte is a token, the template is ChatML, and the answer is what a test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.runtime.llm import LLM
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens
from kaiwa.text.tokens.tokenizer import Tokenizer

START, END = 256, 257
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Bytes:
    """A vocabulary of 256 tokens."""

    size = 256

    def segment(self, text: str, place: object) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else b""


def tokenizer() -> Tokenizer:
    special = SpecialTokens(
        [SpecialToken(START, "<|im_start|>", is_control=True), SpecialToken(END, "<|im_end|>", is_control=True)]
    )
    return Tokenizer(Bytes(), special, bos_id=None, eos_id=END, end_ids=frozenset([END]), adds_bos=False)


def scripted(answer: Callable[[Sequence[int]], Sequence[int]], **options: Any) -> ScriptedEngine:
    return ScriptedEngine(answer, end_id=END, vocab_size=258, **options)


def says(text: str, **options: Any) -> ScriptedEngine:
    """An engine that always gives one answer."""
    return scripted(lambda ids: list(text.encode()), **options)


def echoes(**options: Any) -> ScriptedEngine:
    """An engine that repeats the last user message."""

    def answer(ids: Sequence[int]) -> list[int]:
        begin = max(place for place, token_id in enumerate(ids[:-12]) if token_id == START)
        return list(ids[begin + 1 + len("user\n") : len(ids) - ids[::-1].index(END) - 1])

    return scripted(answer, **options)


def model(engine: Any, **options: Any) -> LLM:
    """An LLM around an engine. It makes no guesses unless asked to, so that tests can count steps."""
    parts = tokenizer()
    options = {"speculation": False, **options}
    return LLM.from_parts(engine, parts, ChatTemplate.of(parts, CHATML), name="small", **options)


def until(is_true: Callable[[], object], timeout_s: float = 10) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.001)
