"""What a tokenizer gives under transformers' names: token ids in rows, and text that a chat template wrote."""

from __future__ import annotations

import importlib.util
from typing import Any, Self

from kaiwa.extras import require
from kaiwa.text.templates.prompt import RenderedPrompt


class Encoding(dict[str, Any]):
    """What a tokenizer gives: `input_ids` and `attention_mask`, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to(self, *device: object, **options: object) -> Self:
        """Itself, with tensors of torch moved where they are wanted."""
        for name, value in self.items():
            self[name] = value.to(*device, **options) if hasattr(value, "to") else value
        return self


class TemplateText(str):
    """What a chat template wrote, which remembers where a person's own text is: no special token is read there.

    Text that is added behind it counts as the template's.
    """

    __slots__ = ("seams",)
    seams: tuple[int, ...]

    @classmethod
    def of(cls, prompt: RenderedPrompt) -> TemplateText:
        """The text of a rendered prompt."""
        text = cls(prompt.text)
        text.seams = prompt.seams
        return text

    def __add__(self, other: str) -> TemplateText:
        return TemplateText.of(RenderedPrompt(str(self) + other, self.seams))


def as_tensors(encoding: Encoding) -> Encoding:
    """Real tensors where torch is installed and the rows are of one length; else rows, which do for Kaiwa's models."""
    if importlib.util.find_spec("torch") is None or len({len(row) for row in encoding["input_ids"]}) > 1:
        return encoding
    torch = require("torch", feature="return_tensors='pt'", extra="torch")
    return Encoding({name: torch.tensor(value) for name, value in encoding.items()})
