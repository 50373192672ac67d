"""What all objects of OpenAI's completions begin and end with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiwa.events import Usage


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of every object that belongs to one answer. Its id starts with `prefix`."""

    model: str
    prefix: str
    id: str = ""
    created_s: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.prefix}-{secrets.token_hex(12)}")

    def to_dict(self, kind: str) -> dict[str, Any]:
        """The fields in OpenAI's words."""
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}


def usage_object(usages: Sequence[Usage], *, num_each: int) -> dict[str, Any]:
    """The tokens of all choices, `num_each` of each prompt: the prompts once, and what was written in all of them."""
    prompts = usages[::num_each]
    read = sum(usage.prompt_tokens for usage in prompts)
    written = sum(usage.generated_tokens for usage in usages)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in prompts)},
        "completion_tokens_details": {"reasoning_tokens": sum(usage.reasoning_tokens for usage in usages)},
    }
