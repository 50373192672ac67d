"""What an answer shall be: whether it may call tools, must, or is JSON. Checked, in the words of the OpenAI API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiwa.chat.tool_schema import ToolLike, schemas
from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.constraints.grammar import Grammar
from kaiwa.text.constraints.grammars import Grammars
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tool import Tool, ToolChoice, read_choice, read_tools

RESPONSE_FORMATS = ("text", "json_object", "json_schema")


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """What is asked of one answer. `shown_tools` are what the template prints, None where there are none."""

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    is_parallel: bool = True
    shown_tools: Sequence[Mapping[str, Any]] | None = None
    is_json: bool = False
    schema: Mapping[str, Any] | None = None

    @classmethod
    def read(
        cls,
        tools: Sequence[ToolLike] | None,
        tool_choice: object,
        parallel_tool_calls: bool,
        response_format: Mapping[str, Any] | None,
    ) -> AnswerShape:
        """Check what a caller asks for. `tools` may be functions. Raises `InvalidOption`."""
        shown = schemas(tools) if tools else None
        read = read_tools(shown)
        if not isinstance(parallel_tool_calls, bool):
            raise InvalidOption(f"parallel_tool_calls={parallel_tool_calls!r} is impossible", hint="True or False")
        is_json, schema = _read_response_format(response_format)
        return cls(read, read_choice(tool_choice, read), parallel_tool_calls, shown, is_json, schema)

    @property
    def may_call(self) -> bool:
        """Whether the answer may call a tool."""
        return bool(self.tools) and self.choice.mode != "none"

    def check(self, answer: AnswerFormat, template: ChatTemplate) -> None:
        """Raise `TemplateError` where the model's template knows no tools, and there are some."""
        if self.tools:
            answer.check_tools(template)

    def parser(self, answer: AnswerFormat) -> StreamParser:
        """What reads the answer."""
        return answer.parser(self.tools if self.may_call else ())

    def grammar(self, answer: AnswerFormat, grammars: Grammars) -> Grammar | None:
        """What the answer must fit, or None. Raises `InvalidOption` for a schema that cannot be enforced."""
        if self.may_call:
            schema = {"type": "object"} if self.is_json and self.schema is None else self.schema
            return grammars.calls(self.tools, self.choice, answer=answer, is_parallel=self.is_parallel, schema=schema)
        if self.schema is not None:
            return grammars.json_schema(self.schema, answer=answer)
        return grammars.json_object(answer=answer) if self.is_json else None


def _read_response_format(given: Mapping[str, Any] | None) -> tuple[bool, Mapping[str, Any] | None]:
    """Whether the answer is JSON, and its schema."""
    if given is None:
        return False, None
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind not in RESPONSE_FORMATS:
        raise InvalidOption(
            f"response_format={given!r} is impossible",
            hint=did_you_mean(str(kind), RESPONSE_FORMATS) if kind else 'it is an object: {"type": "json_object"}',
        )
    if kind != "json_schema":
        return kind == "json_object", None
    described = given.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(schema, Mapping):
        raise InvalidOption(
            "response_format of the type 'json_schema' has no schema",
            hint='write {"type": "json_schema", "json_schema": {"name": "…", "schema": {…}}}',
        )
    return True, schema
