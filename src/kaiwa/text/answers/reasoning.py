"""What a model thinks before it answers: the markers around it, found in its chat template."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The markers that open and close a model's thoughts.

    They count where thoughts may begin only: at the beginning of an answer, after other thoughts, and after a tool
    call. An answer that talks about `<think>` stays text.
    """

    opens: str
    closes: str

    def begun(self, prompt: str) -> str:
        """What the prompt has of the answer already: the opening marker, where the template wrote it at its end."""
        return self.opens if prompt.rstrip().endswith(self.opens) else ""


KNOWN = (
    Reasoning("<|channel>thought", "<channel|>"),
    Reasoning("[THINK]", "[/THINK]"),
    Reasoning("<think>", "</think>"),
    Reasoning("<thinking>", "</thinking>"),
)
"""The first whose markers both stand in the template counts."""


def find(template: str) -> Reasoning | None:
    """The markers that a chat template knows, or None where its model does not think in public."""
    return next((known for known in KNOWN if known.opens in template and known.closes in template), None)
