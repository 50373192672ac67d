"""Tool formats beside the templates of all models that llama.cpp keeps: what they write is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llama_cpp_models
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialTokens
from kaiwa.text.tool import Tool
from text.answers import calls_of, parse

pytestmark = pytest.mark.oracle

TOOL = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "more": {"type": "object"}},
    },
)
SHOWN = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": dict(TOOL.parameters)},
}
QUESTION = {"role": "user", "content": "Weather?"}
ARGUMENTS = {"city": 'Köln "am Rhein"', "days": 2, "more": {"a": [1, True]}}
MIN_KNOWN = 20


def last_turn(template: ChatTemplate, arguments: dict[str, Any]) -> str:
    """What a template writes for a call, from the place on where it differs from a prompt without one."""
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    turns = [QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]}]
    prompt = template.render([QUESTION], tools=[SHOWN]).text
    whole = template.render(turns, tools=[SHOWN], add_generation_prompt=False).text
    if whole.startswith(prompt):
        return whole[len(prompt) :]
    # A prompt that has begun the thoughts: it shares the first letters of its own marker with that of the call.
    common = prompt
    while not whole.startswith(common):
        common = common[:-1]
    return whole[max(common.rfind(">"), common.rfind("]")) + 1 :]


def test_what_templates_write_is_read_back(tests_home: Path) -> None:
    folder = llama_cpp_models.fetch(tests_home / "llama.cpp") / "templates"
    known, wrong = [], []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", special_tokens=SpecialTokens([]))
        answer = AnswerFormat.of(template)
        if answer.tool_format is None:
            continue
        known.append(path.stem)
        calls = calls_of(parse(AnswerFormat(answer.tool_format).parser([TOOL]), [last_turn(template, ARGUMENTS)]))
        if [(call.name, call.arguments) for call in calls] != [("get_weather", ARGUMENTS)]:
            wrong.append(path.stem)
    assert not wrong
    assert len(known) >= MIN_KNOWN
