"""Special tokens: the ones that text must not turn into by accident, and how they are found in a template's text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kaiwa.text.templates.prompt import RenderedPrompt

END_OF_TURN = frozenset(
    {
        *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"),
        *("<|end_of_text|>", "<|end_of_turn|>", "<end_of_turn>", "<end_of_utterance>", "<turn|>", "</s>", "<eos>"),
        "<|tool_response>",
        *("<EOT>", "[EOT]", "[EOS]", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
    }
)
"""Texts of tokens after which a model has nothing more to say, whatever its file names as end of sequence."""


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that is matched as a whole, in a template's own text only.

    `is_control` tokens are never shown (turn markers, beginning of sequence); the others are markup that people may
    see (`<think>`, `<tool_call>`). `eats_left` and `eats_right` say that white space beside it belongs to it.
    """

    id: int
    text: str
    is_control: bool
    eats_left: bool = False
    eats_right: bool = False


class SpecialTokens(Mapping[str, int]):
    """The special tokens of one tokenizer: text to id. One of a single character is never looked for in text."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        self._by_text = {token.text: token for token in tokens if token.text}
        self._by_id = {token.id: token for token in self._by_text.values()}
        self._pattern = _longest_first(text for text in self._by_text if len(text) > 1)

    def __getitem__(self, text: str) -> int:
        return self._by_text[text].id

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_text)

    def __len__(self) -> int:
        return len(self._by_text)

    def find(self, token_id: int) -> SpecialToken | None:
        """The special token of an id, or None where it is an ordinary one."""
        return self._by_id.get(token_id)

    def is_control(self, text: str) -> bool:
        """Whether `text` is a control token, which is never shown."""
        token = self._by_text.get(text)
        return token is not None and token.is_control

    def split(self, prompt: RenderedPrompt) -> Iterator[str | int]:
        """The prompt as ids of special tokens and the text between them. Tokens that reach over a seam are text."""
        text, start, position = prompt.text, 0, 0
        while match := self._pattern.search(text, position):
            if _is_crossed(prompt.seams, match):
                position = match.start() + 1
                continue
            token = self._by_text[match.group()]
            before = text[start : match.start()]
            if before := before.rstrip() if token.eats_left else before:
                yield before
            yield token.id
            start = position = _skip_spaces(text, match.end()) if token.eats_right else match.end()
        if start < len(text):
            yield text[start:]


def end_ids(special: SpecialTokens, *declared: int | None) -> frozenset[int]:
    """Ids that end a turn: the `declared` ones, and special tokens whose text says so."""
    found = {special[text] for text in END_OF_TURN & special.keys()}
    if {"<|return|>", "<|call|>", "<|end|>"} <= special.keys():
        # In the harmony format <|end|> only closes one of several messages in a turn.
        found.discard(special["<|end|>"])
    return frozenset(found.union(token_id for token_id in declared if token_id is not None))


def _longest_first(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)")  # "(?!)" never matches


def _is_crossed(seams: tuple[int, ...], match: re.Match[str]) -> bool:
    following = bisect_right(seams, match.start())
    return following < len(seams) and seams[following] < match.end()


def _skip_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
