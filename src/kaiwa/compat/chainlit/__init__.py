"""Chainlit's names: `import kaiwa.compat.chainlit as cl` in place of `import chainlit as cl`.

Most are Kaiwa's own, which `import kaiwa as cl` gives as well. What Kaiwa has not says so when it is used, and what to
do instead.
"""

from __future__ import annotations

import importlib
from typing import Any

import kaiwa

_MODULES = ("element", "input_widget", "sync", "types", "user")

MISSING = {
    "LangchainCallbackHandler": "make a kaiwa.Step where your chain works",
    "AsyncLangchainCallbackHandler": "make a kaiwa.Step where your chain works",
    "LlamaIndexCallbackHandler": "make a kaiwa.Step where your index works",
    "SemanticKernelFilter": "make a kaiwa.Step where your kernel works",
    "instrument_openai": "make a kaiwa.Step around the call, or let kaiwa.reply do it",
    "instrument_mistralai": "make a kaiwa.Step around the call, or let kaiwa.reply do it",
    "on_audio_start": "let people send a recording as a file",
    "on_audio_chunk": "let people send a recording as a file",
    "on_audio_end": "let people send a recording as a file",
    "on_mcp_connect": "call the MCP server's tools in on_message",
    "on_mcp_disconnect": "call the MCP server's tools in on_message",
    "on_shared_thread_view": "chats are seen by their owners only",
    "on_slack_reaction_added": "Kaiwa's apps live in the browser",
}
"""What Chainlit has and Kaiwa has not, and what to do instead."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in MISSING:
        raise AttributeError(f"Kaiwa has no {name} ({MISSING[name]})")
    return getattr(kaiwa, name)


def __dir__() -> list[str]:
    return sorted([*dir(kaiwa), *_MODULES])
