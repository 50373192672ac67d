"""A rendered prompt: text, and where in it a special token must not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """What a chat template wrote.

    `seams` are offsets into `text`, rising, over which no special token may reach. They stand inside every token-like
    literal that came from a person, so that a typed `<|im_start|>` stays ten characters.
    """

    text: str
    seams: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text
