"""Seams: what keeps text that people wrote from becoming special tokens, through everything a template does to it.

Before a template runs, a noncharacter is put inside every special-token literal in what people wrote, and where their
text begins or ends with part of one. Templates trim, slice and join as they like; afterwards the noncharacters are
taken out, and where they stood no special token may reach over.

Contents of assistant turns are the model's own words and are treated lighter: markup such as `<think>` and
`<tool_call>` stays visible to the template and becomes tokens again, turn markers do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kaiwa.errors import TemplateError
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.special_tokens import SpecialTokens

REASONING = frozenset({"<think>", "</think>", "[THINK]", "[/THINK]", "<thinking>", "</thinking>"})
"""Tokens around a model's reasoning, which templates look for in assistant turns; some tokenizers call them control."""

_CANDIDATES = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""Noncharacters: code points that Unicode reserves for use inside programs."""

_RESERVED = re.compile("[\ufdd0-\ufdef]")

_NAMED_BY_TEMPLATES = ("role", "type")
"""Values that templates compare with words of their own: only a whole literal is worth a seam there."""


class Seamstress:
    """Puts seams into the inputs of one rendering.

    `taken` is the template's own text. The noncharacter is one that occurs neither there nor in `inputs`, so that
    nothing is lost from what people wrote.
    """

    def __init__(self, literals: Literals, inputs: Any, taken: str) -> None:
        used = {found for text in (taken, *_strings(inputs)) for found in _RESERVED.findall(text)}
        free = [character for character in _CANDIDATES if character not in used]
        if len(free) < 2:
            raise TemplateError(
                "the conversation has all of the noncharacters U+FDD0 to U+FDEF, which Unicode reserves"
            )
        self.seam, self.end = free[:2]
        self._literals = literals

    def sew_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message with seams."""
        sewn = self.sew(message)
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            sewn["content"] = self._literals.control.sew(message["content"], self.seam)
        return dict(sewn)

    def sew(self, value: Any) -> Any:
        """A copy of a value made of plain JSON types, with seams in its texts."""
        if isinstance(value, str):
            return self._literals.all.sew(value, self.seam)
        if isinstance(value, Mapping):
            return {
                self._inside(key): self._inside(item) if key in _NAMED_BY_TEMPLATES else self.sew(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.sew(item) for item in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return f"<{type(value).__name__}>"

    def unpick(self, text: str) -> RenderedPrompt:
        """The rendered text without the noncharacters, and where they stood."""
        parts = text.split(self.seam)
        seams, offset = [], 0
        for part in parts[:-1]:
            offset += len(part)
            seams.append(offset)
        return RenderedPrompt("".join(parts), tuple(seams))

    def _inside(self, value: Any) -> Any:
        return self._literals.all.sew_inside(value, self.seam) if isinstance(value, str) else self.sew(value)


class Literals:
    """What the seams of one tokenizer are for: all of its special tokens, or those that stay hidden from templates."""

    def __init__(self, special_tokens: SpecialTokens) -> None:
        self.all = _Texts(special_tokens)
        self.control = _Texts(
            text for text in special_tokens if special_tokens.is_control(text) and text not in REASONING
        )


class _Texts:
    """Finds in a text what could be read as special tokens, or as part of one together with what stands beside it."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = [text for text in texts if len(text) > 1]
        rests: dict[str, list[str]] = {}
        for text in texts:
            rests.setdefault(text[0], []).append(re.escape(text[1:]))
        # Only the first character is taken, for literals may overlap.
        choices = [f"{re.escape(first)}(?={'|'.join(following)})" for first, following in rests.items()]
        self._literal = re.compile("|".join(choices)) if choices else None
        self._beginnings = {text[:length] for text in texts for length in range(1, len(text))}
        self._ends = {text[length:] for text in texts for length in range(1, len(text))}
        self._longest = max(map(len, texts), default=0)

    def sew(self, text: str, seam: str) -> str:
        """`text` with a seam in each literal, and at its own ends where those could join into one."""
        sewn = self.sew_inside(text, seam)
        lengths = range(1, min(self._longest, len(text) + 1))
        if any(text[:length] in self._ends for length in lengths):
            sewn = seam + sewn
        if any(text[-length:] in self._beginnings for length in lengths):
            sewn += seam
        return sewn

    def sew_inside(self, text: str, seam: str) -> str:
        """`text` with a seam after the first character of each literal."""
        return self._literal.sub(rf"\g<0>{seam}", text) if self._literal else text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
