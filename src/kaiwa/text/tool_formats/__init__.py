"""The formats in which models write tool calls, one module each, and which of them a chat template speaks."""

from __future__ import annotations

from kaiwa.text.tool_formats import gemma4, harmony, hermes, llama3_json, mistral, qwen3_coder
from kaiwa.text.tool_formats.format import ToolFormat

FORMATS: tuple[ToolFormat, ...] = (
    harmony.FORMAT,
    gemma4.FORMAT,
    mistral.FORMAT,
    mistral.LIST_FORMAT,
    qwen3_coder.FORMAT,
    hermes.FORMAT,
    llama3_json.FORMAT,
)


def find(template: str) -> ToolFormat | None:
    """The format that a chat template speaks, by what stands in it; None where there is none that Kaiwa reads."""
    return next((known for known in FORMATS if known.is_spoken(template)), None)
