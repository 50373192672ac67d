"""What a loaded model is made of, and how an engine is told to hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kaiwa.engines.engine import Engine
from kaiwa.errors import InvalidOption
from kaiwa.events import Progress
from kaiwa.sampling import Sampling
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.tokenizer import Tokenizer

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How an engine holds a model; None is what the model and the machine suggest."""

    threads: int | None = None
    context_length: int | None = None
    quantization: str | None = None
    kv_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A model in memory. Without a `template` it cannot read conversations. `sampling` are its own defaults.

    `pooling` is how it makes one vector of a text, where its files say so.
    """

    name: str
    engine: Engine
    tokenizer: Tokenizer
    template: ChatTemplate | None
    sampling: Sampling
    pooling: str | None = None


def check_threads(threads: object) -> None:
    """Raises `InvalidOption` for what is no number of threads."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InvalidOption(f"threads={threads!r} is impossible", hint="threads must be a whole number of at least 1")
