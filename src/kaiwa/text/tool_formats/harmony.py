"""Harmony, the format of GPT-OSS: an answer is a row of messages, each on a channel.

    <|channel|>analysis<|message|>They want the weather.<|end|><|start|>assistant<|channel|>commentary
    to=functions.get_weather <|constrain|>json<|message|>{"city": "Köln"}<|call|>

Source: OpenAI's description (openai/harmony, docs/format.md) and the chat template of openai/gpt-oss-120b. The
prompt ends with `<|start|>assistant`, so that an answer begins within a header. Thoughts are on the channel "analysis",
what a person reads on "final", and on "commentary" both calls and what is said before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kaiwa.events import ReasoningDelta, TextDelta
from kaiwa.text.answers.stream_source import NoCall, Reading, Source
from kaiwa.text.constraints.rules import ANYTHING, Rules
from kaiwa.text.tool import Tool
from kaiwa.text.tool_formats.format import Calls, ToolFormat, guarded

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
ASSISTANT, FUNCTIONS = "assistant", "functions."
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def is_spoken(template: str) -> bool:
    """Whether a template writes messages on channels."""
    return all(marker in template for marker in (CHANNEL, MESSAGE, "analysis"))


def read(source: Source, calls: Calls, marker: str) -> Reading[None]:
    """Read the messages of an answer. What stands outside of a message is shown as text."""
    while (yield from source.peek()):
        source.mark()
        if (yield from source.accept(START)):
            yield from source.accept(ASSISTANT)
        header = yield from _read_header(source)
        if header is not None:
            yield from guarded(source, calls, _read_message(source, calls, header))
            continue
        if stray := source.marked():
            yield TextDelta(stray)
        if (yield from source.until((START,), TextDelta, marks=True)):
            source.rewind()


def _read_header(source: Source) -> Reading[str | None]:
    """What stands before `<|message|>`, or None where no header begins here."""
    for begins in (CHANNEL, MESSAGE, " to="):
        if (yield from source.accept(begins)):
            break
    else:
        return None
    if begins == MESSAGE:
        return ""
    try:
        header = begins + (yield from source.word_until((MESSAGE,)))
    except NoCall:
        return None
    yield from source.expect(MESSAGE)
    return header


def _read_message(source: Source, calls: Calls, header: str) -> Reading[None]:
    """Read the text of a message, to where its header says."""
    recipient, channel = _RECIPIENT.search(header), _CHANNEL.search(header)
    ends = (END, CALL, RETURN)
    if recipient and calls.tools:
        yield calls.start(recipient[1].removeprefix(FUNCTIONS))
        yield from source.until(ends, calls.piece)
        yield calls.end()
        return
    source.release()
    is_thought = channel is not None and channel[1] == "analysis"
    yield from source.until(ends, ReasoningDelta if is_thought else TextDelta)


def write_call(rules: Rules, tool: Tool) -> str:
    """One call. Its recipient stands before or after the channel: the template and the models differ there."""
    channel, recipient = rules.text(CHANNEL), f"to={FUNCTIONS}{tool.name}"
    before = f"{rules.literal(' ' + recipient)} {channel} {rules.literal('commentary')}"
    after = f"{channel} {rules.literal('commentary ' + recipient)}"
    kind = f'(" " {rules.text(CONSTRAIN)} "json" | " json")?'
    return f"({before} | {after}) {kind} {rules.text(MESSAGE)} {rules.json(tool.parameters)}"


def write_answer(rules: Rules, last: Iterable[str]) -> str:
    """A whole answer: thoughts and words before a call, then one of the `last` messages."""
    channel, message = rules.text(CHANNEL), rules.text(MESSAGE)
    following = f"{rules.text(END)} {rules.text(START)} {rules.literal(ASSISTANT)}"
    before = rules.add(f'{channel} ("analysis" | "commentary") {message} {ANYTHING} {following}')
    return f"{before}* {rules.either(last)}"


def write_final(rules: Rules, body: str) -> str:
    """The message that a person reads."""
    return f"{rules.text(CHANNEL)} {rules.literal('final')} {rules.text(MESSAGE)} {body}"


FORMAT = ToolFormat(
    "harmony",
    is_spoken,
    opens=(),
    read=read,
    write_call=write_call,
    tokens=(START, CHANNEL, CONSTRAIN, MESSAGE, END),
    is_single=True,
    is_whole=True,
)
