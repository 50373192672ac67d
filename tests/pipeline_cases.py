"""Calls of a pipeline that Kaiwa and transformers answer alike."""

from __future__ import annotations

from typing import Any

FLAGS: dict[str, Any] = {"max_new_tokens": 24, "do_sample": False}
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}]
OTHER = [{"role": "user", "content": "Count to three."}]
PREFILLED = [*OTHER, {"role": "assistant", "content": "One, two"}]

PROMPTS: dict[str, Any] = {
    "text": "Once upon a time",
    "texts": ["Once", "upon a time", "and so on"],
    "chat": CHAT,
    "chats": [CHAT, OTHER],
    "prefilled": PREFILLED,
    "mixed chats": (CHAT, PREFILLED),
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("text", {}),
    "texts": ("texts", {}),
    "chat": ("chat", {}),
    "chats": ("chats", {}),
    "chats two at a time": ("chats", {"batch_size": 2}),
    "prefilled": ("prefilled", {}),
    "prefilled, new turn": ("prefilled", {"continue_final_message": False}),
    "prefilled, answer only": ("prefilled", {"return_full_text": False}),
    "mixed chats": ("mixed chats", {}),
    "text, answer only": ("text", {"return_full_text": False}),
    "chats, answer only": ("chats", {"return_full_text": False}),
    "with a prefix": ("text", {"prefix": "Tell: "}),
    "repetition": ("chat", {"repetition_penalty": 1.3}),
    "suppressed": ("chat", {"suppress_tokens": [20, 21, 22, 40, 41, 42]}),
}
TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("chat", {"add_generation_prompt": True}),
    "no answer": ("chat", {}),
    "chats": ("chats", {"add_generation_prompt": True}),
    "prefilled": ("prefilled", {"continue_final_message": True}),
}
