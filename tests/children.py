"""Models without weights for child processes, which import this module and call its functions by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tool_models
from kaiwa.errors import UnusableFile
from kaiwa.events import Progress
from kaiwa.runtime.llm import LLM
from kaiwa.runtime.loading.budget import Budget, current_budget
from small_model import echoes, model, says

OnProgress = Callable[[Progress], None]


def talking(*, model: str, on_progress: OnProgress, text: str = "Hello", delay_s: float = 0.0, **options: Any) -> LLM:
    on_progress(Progress("load", 1, 2, "tensors"))
    return small(says(text, delay_s=delay_s, **options))


def calling(*, model: str, on_progress: OnProgress) -> LLM:
    return tool_models.says(tool_models.call("get_weather", city="Ulm"))


def echoing(*, model: str, on_progress: OnProgress, delay_s: float = 0.0) -> LLM:
    return small(echoes(delay_s=delay_s))


def refusing(*, model: str, on_progress: OnProgress) -> LLM:
    raise UnusableFile("x.gguf", "GGUF", "it is cut short", hint="download it again")


def mistaken(*, model: str, on_progress: OnProgress) -> LLM:
    raise ZeroDivisionError("a mistake of ours")


def crashing(*, model: str, on_progress: OnProgress) -> LLM:
    end_with(signal.SIGKILL)
    raise AssertionError("it did not end")


def crashing_later(*, model: str, on_progress: OnProgress, loads: str, num_good: int = 1) -> LLM:
    """The first `num_good` loads succeed; `loads` is a file that counts them."""
    counter = Path(loads)
    num_loads = len(counter.read_text()) if counter.exists() else 0
    counter.write_text("x" * (num_loads + 1))
    if num_loads >= num_good:
        end_with(signal.SIGABRT)
    return small(says("Hello", delay_s=0.01))


def hungry(*, model: str, on_progress: OnProgress) -> LLM:
    """Takes a megabyte, or waits until it may."""
    budget = current_budget()
    assert isinstance(budget, Budget)
    budget.admit(1_000_000)
    return small(says(f"{budget.most_bytes} {budget.share_bytes}"))


class Bomb:
    """Can be packed, and not unpacked."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


class Garbled(LLM):
    def detokenize(self, token_ids: Any) -> Any:
        return Bomb()


def garbled(*, model: str, on_progress: OnProgress) -> LLM:
    parts = small(says("Hello"))._parts
    return Garbled.from_parts(parts.engine, parts.tokenizer, parts.template)


def slow_to_load(*, model: str, on_progress: OnProgress, load_s: float = 60) -> LLM:
    on_progress(Progress("load", 0, 2, "tensors"))
    time.sleep(load_s)
    return small(says("Hello"))


def small(engine: Any) -> LLM:
    return model(engine)


def end_with(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(10)
