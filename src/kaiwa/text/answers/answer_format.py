"""How a model writes its answers, as its chat template shows: where thoughts stand, and how tools are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kaiwa.errors import TemplateError
from kaiwa.text import tool_formats
from kaiwa.text.answers import reasoning
from kaiwa.text.answers.reasoning import Reasoning
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialTokens
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import ToolFormat


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """What stands in an answer beside its text; None where the template says nothing of it.

    `begun` is what a prompt has of its answer already: an opening `<think>`, or a message that is continued.
    """

    tool_format: ToolFormat | None = None
    reasoning: Reasoning | None = None
    begun: str = ""

    @classmethod
    def of(cls, template: ChatTemplate) -> AnswerFormat:
        """The format of a template's answers."""
        return cls(tool_formats.find(template.source), reasoning.find(template.source))

    def after(self, prompt: str, *, continued: str = "") -> AnswerFormat:
        """The format of the answer to one prompt. `continued` is the message that it goes on from, if there is one."""
        begun = continued or (self.reasoning.begun(prompt) if self.reasoning else "")
        return replace(self, begun=begun)

    def shown(self, special_tokens: SpecialTokens) -> frozenset[str]:
        """Control tokens that a parser must see, though no reader does."""
        texts = [*self.tool_format.markers] if self.tool_format else []
        if self.reasoning:
            texts += [self.reasoning.opens, self.reasoning.closes]
        return frozenset(token for token in special_tokens if any(token in text for text in texts))

    def parser(self, tools: Iterable[Tool] = ()) -> StreamParser:
        """A parser for one answer. Without tools, no text is taken for a call."""
        return StreamParser(self.tool_format, reasoning=self.reasoning, tools=tools, begun=self.begun)

    def check_tools(self, template: ChatTemplate) -> None:
        """Raise `TemplateError`, which says what is missing, where a model of this template cannot call tools."""
        if not template.shows_tools:
            raise no_place_for_tools()
        if self.tool_format is None:
            names = ", ".join(known.name for known in tool_formats.FORMATS)
            raise TemplateError(
                "the chat template shows tools, but calls in a format that is not known here",
                hint=f"known formats are {names}",
            )


def no_place_for_tools() -> TemplateError:
    """The error for tools that a model would never hear of."""
    return TemplateError(
        "the chat template has no place for tools: it would not show them to the model",
        hint="choose a model that was made to call tools, or ask for JSON with response_format",
    )
