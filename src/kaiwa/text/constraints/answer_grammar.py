"""Grammars of whole answers: thoughts first where a model has them, then calls of tools, or text that fits a schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.constraints.rules import ANYTHING, Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats import harmony
from kaiwa.text.tool_formats.format import ToolFormat

SPACE = r"/[ \n]{1,4}/"
"""What models put after their thoughts."""

_NO_OBJECT = r"/[^{](?s:.*)/"


def text_only(rules: Rules, answer: AnswerFormat, body: str) -> str:
    """An answer whose text is `body`."""
    return rules.grammar(_after_thoughts(rules, answer, [body], []))


def calls_only(rules: Rules, answer: AnswerFormat, tools: Sequence[Tool], *, is_parallel: bool) -> str:
    """An answer that calls a tool."""
    return rules.grammar(_after_thoughts(rules, answer, [], _calls(rules, answer, tools, is_parallel)))


def calls_or_text(rules: Rules, answer: AnswerFormat, tools: Sequence[Tool], body: str, *, is_parallel: bool) -> str:
    """An answer that calls a tool, or whose text is `body`."""
    return rules.grammar(_after_thoughts(rules, answer, [body], _calls(rules, answer, tools, is_parallel)))


def calls_in_text(rules: Rules, answer: AnswerFormat, tools: Sequence[Tool], *, is_parallel: bool) -> str:
    """An answer that may call tools anywhere: whatever follows after the marker of a call is one."""
    format = answer.tool_format
    assert format is not None
    if format.is_whole:
        return calls_or_text(rules, answer, tools, ANYTHING, is_parallel=is_parallel)
    if format.is_at_start:
        return rules.grammar(rules.either([*_calls(rules, answer, tools, is_parallel), _NO_OBJECT]))
    lead = rules.text_until(format.opens[0])
    one = rules.add(f"{lead} {after_marker(rules, format, tools, is_parallel=is_parallel)}")
    text = rules.add(ANYTHING)
    return rules.grammar(f"{one}* {text}" if is_parallel else rules.either([one, text]))


def after_marker(rules: Rules, format: ToolFormat, tools: Sequence[Tool], *, is_parallel: bool) -> str:
    """What follows after the marker that opens a call: that call, or all of them where one marker is for all."""
    call = rules.either(format.write_call(rules, tool) for tool in tools)
    opens, closes = format.brackets
    if not opens:
        return call
    more = f"({rules.literal(format.separator)} {call})*" if is_parallel else ""
    return f"{rules.literal(opens)} {call} {more} {rules.literal(closes)}"


def _calls(rules: Rules, answer: AnswerFormat, tools: Sequence[Tool], is_parallel: bool) -> list[str]:
    """Calls with their markers; one call of each tool where the format has one message for each."""
    format = answer.tool_format
    assert format is not None
    if format.is_whole:
        return [format.write_call(rules, tool) for tool in tools]
    marker = "" if format.is_at_start else rules.text(format.opens[0])
    one = rules.add(f"{marker} {after_marker(rules, format, tools, is_parallel=is_parallel)}")
    if not is_parallel or format.is_single or format.brackets[0]:
        return [one]
    return [f"{one} ({rules.literal(format.separator)} {one})*"]


def _after_thoughts(rules: Rules, answer: AnswerFormat, texts: Iterable[str], calls: Iterable[str]) -> str:
    """One of the `texts` and `calls`, after what the model thinks."""
    if answer.tool_format is not None and answer.tool_format.is_whole:
        return harmony.write_answer(rules, [*(harmony.write_final(rules, text) for text in texts), *calls])
    body = rules.either([*texts, *calls])
    if answer.reasoning is None:
        return body
    thoughts = f"{rules.text_until(answer.reasoning.closes)} {rules.add(SPACE)}?"
    if answer.begun:
        return f"{thoughts} {body}"
    return f"{rules.add(f'{rules.text(answer.reasoning.opens)} {thoughts}')}? {body}"
