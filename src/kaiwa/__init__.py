"""Kaiwa (会話): chat with language models on your own machine.

    import kaiwa as kw

    llm = kw.LLM("smollm2:135m")
    print(llm.chat("Hey, can you explain gravity to me?").text)

Names load when they are first used, so that importing Kaiwa is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaiwa import errors as errors
    from kaiwa.events import Event as Event
    from kaiwa.events import Finished as Finished
    from kaiwa.events import Reply as Reply
    from kaiwa.events import TextDelta as TextDelta
    from kaiwa.events import Usage as Usage
    from kaiwa.messages import Message as Message
    from kaiwa.runtime.llm import LLM as LLM
    from kaiwa.sampling import Sampling as Sampling

__version__ = "0.1.0"

_PUBLIC = {
    "LLM": "kaiwa.runtime.llm",
    "Message": "kaiwa.messages",
    "Sampling": "kaiwa.sampling",
    "Event": "kaiwa.events",
    "Finished": "kaiwa.events",
    "Reply": "kaiwa.events",
    "TextDelta": "kaiwa.events",
    "Usage": "kaiwa.events",
}

__all__ = [*sorted(_PUBLIC), "errors"]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("kaiwa.errors")
    if name not in _PUBLIC:
        from kaiwa.errors import did_you_mean

        raise AttributeError(f"module 'kaiwa' has no attribute {name!r} ({did_you_mean(name, __all__)})")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
