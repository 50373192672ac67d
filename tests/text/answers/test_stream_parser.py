"""The stream parser: the same events of any cut, nothing lost, and only what is a call becomes one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import (
    ARGUMENTS,
    BRACKETS,
    CITY,
    GEMMA,
    SAMPLES,
    TAGS,
    TOOLS,
    broken_of,
    calls_of,
    merged,
    parse,
    text_of,
    thoughts_of,
)
from kaiwa.events import (
    BrokenToolCall,
    ReasoningDelta,
    TextDelta,
    TokenLogprobs,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
)
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.tool_formats import hermes, llama3_json, mistral, qwen3_coder

FORMATS = sorted(SAMPLES)
PIECES = [
    *("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel>thought\n", "<channel|>", "<tool_call>", "</tool_call>"),
    *(
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
        "<function=",
        "<parameter=",
        "\n</parameter>",
        "</function>",
        "<|python_tag|>",
    ),
    *("<|start|>", "assistant", "<|channel|>", "analysis", "final", "<|message|>", "<|end|>", "<|call|>"),
    *(" to=functions.get_weather", "<|tool_call>", "call:", '<|"|>', "<tool_call|>", "get_weather", "city", ">", ";"),
    *('{"name": "get_weather", "arguments": ', '"parameters"', "{", "}", "[", "]", ",", ":", '"', "\\", '\\"', "null"),
    *("Köln", " ", "\n", "\n\n", "<", "[", "|", "2", "<too", "think"),
]


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    """A text in pieces, cut anywhere."""
    places = st.lists(st.integers(0, len(text)), max_size=40).map(sorted)
    return places.map(lambda cut: [text[i:j] for i, j in zip([0, *cut], [*cut, len(text)], strict=True)])


@st.composite
def cut_answers(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A format, an answer that is full of its markers or of others', and that answer in pieces."""
    name = draw(st.sampled_from(FORMATS))
    sample = SAMPLES[name]
    own = [sample.call, sample.before, sample.between, "I see."]
    if sample.answer.reasoning:
        own += [sample.answer.reasoning.opens, sample.answer.reasoning.closes]
    text = "".join(draw(st.lists(st.one_of(st.sampled_from(own), st.sampled_from(PIECES)), max_size=12)))
    return name, text, draw(cuts(text))


@settings(max_examples=600, deadline=None)
@given(cut_answers())
def test_any_cut_of_a_stream_parses_alike(answer: tuple[str, str, list[str]]) -> None:
    name, text, pieces = answer
    whole = merged(parse(SAMPLES[name].parser(), [text]))
    assert merged(parse(SAMPLES[name].parser(), pieces)) == whole
    assert merged(parse(SAMPLES[name].parser(), list(text))) == whole


@settings(max_examples=200, deadline=None)
@given(cut_answers())
def test_the_pieces_of_a_call_are_its_arguments(answer: tuple[str, str, list[str]]) -> None:
    name, _, pieces = answer
    written: dict[int, str] = {}
    for event in parse(SAMPLES[name].parser(), pieces):
        if isinstance(event, ToolCallDelta):
            written[event.index] = written.get(event.index, "") + event.arguments
        elif isinstance(event, ToolCall):
            assert json.loads(written[event.index]) == event.arguments


@settings(max_examples=200, deadline=None)
@given(cut_answers())
def test_every_logprob_is_in_exactly_one_event(answer: tuple[str, str, list[str]]) -> None:
    name, _, pieces = answer
    parser, events = SAMPLES[name].parser(), []
    tokens = [TokenLogprobs(number, piece.encode(), -1.0) for number, piece in enumerate(pieces)]
    for piece, token in zip(pieces, tokens, strict=True):
        events += parser.push(piece, [token])
    events += parser.finish()
    assert [token for event in events for token in getattr(event, "logprobs", ())] == tokens


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.data())
def test_without_tools_and_thoughts_an_answer_is_text(text: str, data: st.DataObject) -> None:
    for format in (None, hermes.FORMAT, llama3_json.FORMAT, mistral.FORMAT):
        assert text_of(parse(StreamParser(format), data.draw(cuts(text)))) == text


@pytest.mark.parametrize("name", FORMATS)
def test_a_call(name: str) -> None:
    sample = SAMPLES[name]
    events = merged(parse(sample.parser(), [sample.call]))
    started, delta, call = events
    assert started == ToolCallStarted(0, "", "get_weather")
    assert isinstance(delta, ToolCallDelta)
    assert json.loads(delta.arguments) == ARGUMENTS
    assert call == ToolCall("get_weather", ARGUMENTS)


@pytest.mark.parametrize("name", FORMATS)
def test_arguments_come_as_they_are_written(name: str) -> None:
    sample = SAMPLES[name]
    parser, seen = sample.parser(), ""
    for letter in sample.call[: sample.call.index("</x>")]:
        seen += "".join(event.arguments for event in parser.push(letter) if isinstance(event, ToolCallDelta))
    assert json.dumps(CITY, ensure_ascii=False)[: len("Kö ln }")] in seen


@pytest.mark.parametrize("name", FORMATS)
def test_two_calls(name: str) -> None:
    sample = SAMPLES[name]
    calls = calls_of(parse(sample.parser(), [sample.call + sample.between + sample.call]))
    assert [(call.index, call.name, call.arguments) for call in calls] == [
        (0, "get_weather", ARGUMENTS),
        (1, "get_weather", ARGUMENTS),
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_ids_are_what_every_template_takes(name: str) -> None:
    sample = SAMPLES[name]
    events = parse(sample.parser(), [sample.call + sample.between + sample.call])
    ids = [event.id for event in events if isinstance(event, ToolCallStarted)]
    assert ids == [call.id for call in calls_of(events)]
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"llama3_json", "harmony"}))
def test_text_around_a_call(name: str) -> None:
    sample = SAMPLES[name]
    events = merged(parse(sample.parser(), [f"Let me see.\n\n{sample.call} Done."]))
    assert [type(event) for event in events] == [TextDelta, ToolCallStarted, ToolCallDelta, ToolCall, TextDelta]
    assert text_of(events) == "Let me see. Done.", "white space before a marker belongs to the marker"


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_that_ends_inside_a_call_shows_it(name: str) -> None:
    sample = SAMPLES[name]
    for length in range(sample.call.index("get_weather") + len("get_weather") + 12, len(sample.call) - 1):
        events = parse(sample.parser(), [sample.call[:length]])
        if calls_of(events):
            continue  # all but a closing marker was there
        assert text_of(events) == sample.call[:length]
        started = [event.index for event in events if isinstance(event, ToolCallStarted)]
        assert [broken.index for broken in broken_of(events) if broken.index is not None] == started
        assert all(broken.reason for broken in broken_of(events))


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("hermes", '<tool_call>{"name": "get_weather", "arguments": [1]}</tool_call> Sorry.', "not an object"),
        ("hermes", '<tool_call>{"name": "get_weather", "arguments": {"a" 1}}</tool_call> Sorry.', "not JSON"),
        ("hermes", '<tool_call>{"arguments": {}}</tool_call> Sorry.', "it has no name"),
        ("mistral", "[TOOL_CALLS]get_weather[ARGS]{oops} Sorry.", "not JSON"),
        ("qwen3_coder", "<tool_call>\n<function=get_weather>\ncity=Köln Sorry.", "'<parameter=' was expected"),
        ("gemma4", "<|tool_call>call:get_weather{city:[1}<tool_call|> Sorry.", "',' was expected"),
        ("harmony", "<|channel|>commentary to=functions.get_weather<|message|>oops<|call|> Sorry.", "not JSON"),
    ],
)
def test_a_broken_call_stays_visible(name: str, text: str, shown: str) -> None:
    events = parse(SAMPLES[name].parser(), [text])
    (broken,) = broken_of(events)
    assert shown in broken.reason
    assert not calls_of(events)
    assert text_of(events) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", "Write <tool_call> and </tool_call> around it."),
        ("hermes", "It is <tool_call"),
        ("mistral", "The marker is [TOOL_CALLS] and no more."),
        ("mistral_list", "[TOOL_CALLS"),
        ("qwen3_coder", "Use <function=> or <tool_call> as you like."),
        ("gemma4", "They write <|tool_call> first."),
        ("llama3_json", '{"name": "Ada", "parameters": {"age": 3}}'),
        ("llama3_json", '{"type": "object", "properties": {}}'),
        ("llama3_json", "{ not JSON"),
        ("llama3_json", 'Here: {"name": "get_weather", "parameters": {}}'),
        ("harmony", "No channel at all."),
        ("harmony", "<|start|>user and so on"),
        ("harmony", "<|channel|>final and no message"),
    ],
)
def test_what_only_looks_like_a_call_is_text(name: str, text: str) -> None:
    events = parse(SAMPLES[name].parser(), list(text))
    assert text_of(events) == text
    assert {type(event) for event in events} == {TextDelta}


def test_a_call_after_what_only_looked_like_one() -> None:
    sample = SAMPLES["hermes"]
    events = parse(sample.parser(), [f"Not <tool_call> this, but {sample.call}"])
    assert text_of(events) == "Not <tool_call> this, but"
    assert [call.arguments for call in calls_of(events)] == [ARGUMENTS]


@pytest.mark.parametrize(("name", "around"), [("hermes", TAGS), ("mistral", BRACKETS), ("gemma4", GEMMA)])
def test_thoughts_come_first(name: str, around: Any) -> None:
    sample = SAMPLES[name]
    text = f"\n{around.opens}\nHm, {sample.call[:12]}…\n\n{around.closes}\n\nLet me see. {sample.call}"
    events = merged(parse(sample.parser(), [text]))
    assert thoughts_of(events) == f"Hm, {sample.call[:12]}…"
    assert text_of(events) == "Let me see."
    assert [call.arguments for call in calls_of(events)] == [ARGUMENTS]


def test_thoughts_that_the_prompt_has_begun() -> None:
    for text in ("Hm.\n</think>\n\nYes.", "\nHm.</think>Yes."):
        events = merged(parse(SAMPLES["hermes"].parser(begun="<think>"), list(text)))
        assert events == [ReasoningDelta("Hm."), TextDelta("Yes.")]


def test_a_continued_message() -> None:
    parser = SAMPLES["hermes"].parser(begun="<think>\nHm, so")
    assert merged(parse(parser, [" be it.</think>Yes."])) == [ReasoningDelta(" be it."), TextDelta("Yes.")]
    parser = SAMPLES["hermes"].parser(begun="I say:")
    assert merged(parse(parser, [" <think> is a tag"])) == [TextDelta(" <think> is a tag")]


@pytest.mark.parametrize("text", ["Models write <think> and </think>.", " <think", "`<think>` is a tag.", "</think>"])
def test_an_answer_that_talks_about_thoughts_is_text(text: str) -> None:
    assert merged(parse(SAMPLES["hermes"].parser(), list(text))) == [TextDelta(text)]


def test_thoughts_without_an_end() -> None:
    assert merged(parse(SAMPLES["hermes"].parser(), ["<think>", "Hm. ", "\n"])) == [ReasoningDelta("Hm. \n")]


def test_channels() -> None:
    text = (
        "<|channel|>analysis<|message|>They want it.<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "I will look.<|end|><|start|>assistant<|channel|>final<|message|>It is warm."
    )
    events = merged(parse(SAMPLES["harmony"].parser(), list(text)))
    assert events == [ReasoningDelta("They want it."), TextDelta("I will look.It is warm.")]


@pytest.mark.parametrize(
    "header",
    [
        " to=functions.get_weather<|channel|>commentary json<|message|>",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
        "<|channel|>analysis to=functions.get_weather code<|message|>",
    ],
)
def test_a_recipient_stands_anywhere_in_a_header(header: str) -> None:
    (call,) = calls_of(parse(SAMPLES["harmony"].parser(), [header + '{"city": "Ulm"}']))
    assert (call.name, call.arguments) == ("get_weather", {"city": "Ulm"})


def test_names_and_arguments_in_any_order() -> None:
    for text in (
        '{"arguments": {"city": "Ulm"}, "name": "get_weather"}',
        '{ "id" : [1, {"a": "}"}], "name":"get_weather","arguments":{"city": "Ulm"} }',
        '{"name": "get_weather", "parameters": "{\\"city\\": \\"Ulm\\"}"}',
    ):
        events = parse(SAMPLES["hermes"].parser(), [f"<tool_call>{text}</tool_call>"])
        assert [call.arguments for call in calls_of(events)] == [{"city": "Ulm"}]
    (call,) = calls_of(parse(SAMPLES["hermes"].parser(), ['<tool_call>{"name": "no_arguments"}']))
    assert call.arguments == {}


def test_several_objects_in_one_pair_of_markers() -> None:
    one = '{"name": "no_arguments", "arguments": {}}'
    for text in (f"<tool_call>{one}\n{one}</tool_call>", f"<tool_call>\n{one}\n<tool_call>\n{one}\n</tool_call>"):
        assert len(calls_of(parse(SAMPLES["hermes"].parser(), list(text)))) == 2


def test_values_in_tags_have_the_types_of_the_schema() -> None:
    text = (
        "<function=get_weather><parameter=city>12</parameter>\n<parameter=days>\n3\n</parameter>"
        "<parameter=tags>not a list</parameter><parameter=other>True</parameter></function>"
    )
    (call,) = calls_of(parse(SAMPLES["qwen3_coder"].parser(), list(text)))
    assert call.arguments == {"city": "12", "days": 3, "tags": "not a list", "other": True}
    assert qwen3_coder.is_text({"enum": ["a", "b"]})
    assert not qwen3_coder.is_text({"enum": ["a", 1]})


def test_gemmas_notation() -> None:
    text = '<|tool_call>call:get_weather{a:{b:[1, -2.5e1,true,null],<|"|>c d<|"|>:{}},e:bare words}<tool_call|>'
    (call,) = calls_of(parse(SAMPLES["gemma4"].parser(), list(text)))
    assert call.arguments == {"a": {"b": [1, -25.0, True, None], "c d": {}}, "e": "bare words"}


def test_depth_is_bounded() -> None:
    for name, head in (
        ("gemma4", "<|tool_call>call:get_weather{a:"),
        ("hermes", '<tool_call>{"name": "a", "arguments": '),
    ):
        text = head + "[" * 100_000
        events = parse(SAMPLES[name].parser(), [text])
        assert text_of(events) == text
        assert broken_of(events)


def test_pythons_tag_and_semicolons() -> None:
    one = '{"name": "no_arguments", "parameters": {}}'
    for text in (f"<|python_tag|>{one}", f"<|python_tag|>{one};{one}", f" {one} ; {one}"):
        assert len(calls_of(parse(SAMPLES["llama3_json"].parser(), list(text)))) == text.count("{}")


def test_a_call_of_an_unknown_tool_is_given() -> None:
    (call,) = calls_of(parse(SAMPLES["hermes"].parser(), ['<tool_call>{"name": "other", "arguments": {}}']))
    assert call.name == "other"


def test_text_is_given_at_once() -> None:
    parser = SAMPLES["hermes"].parser()
    assert [merged(parser.push(piece)) for piece in ("Hel", "lo ", "<", "b>")] == [
        [TextDelta("Hel")],
        [TextDelta("lo")],
        [],
        [TextDelta(" <b>")],
    ]


def test_a_long_answer_takes_linear_time() -> None:
    def pieces() -> Iterator[str]:
        yield SAMPLES["hermes"].call.partition("Kö")[0]
        yield from ("word " for _ in range(20_000))
        yield '"}}</tool_call>'

    (call,) = calls_of(parse(SAMPLES["hermes"].parser(), pieces()))
    assert len(call.arguments["city"]) == 100_000


def test_tools_are_told_apart_by_name() -> None:
    assert [tool.name for tool in TOOLS] == ["get_weather", "no_arguments"]
    assert BrokenToolCall("x", "y").index is None
