"""Tool formats: found by a template's text, and read back from what templates write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from answers import ARGUMENTS, SAMPLES, WEATHER, calls_of, parse, text_of
from kaiwa.errors import TemplateError
from kaiwa.text import tool_formats
from kaiwa.text.answers import reasoning
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.answers.decoder import Decoder
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialTokens
from marked_tokens import ids_of, tokenizer

GOLDEN = Path(__file__).parents[1] / "golden" / "text"
TEMPLATES = {
    path.stem: path for folder in ("templates", "tool_templates") for path in sorted((GOLDEN / folder).glob("*.jinja"))
}
SPOKEN = {
    "smollm2": (None, None),
    "qwen2.5": ("hermes", None),
    "qwen3": ("hermes", "<think>"),
    "qwen3.5": ("qwen3_coder", "<think>"),
    "qwen3-coder": ("qwen3_coder", None),
    "mistral-nemo": ("mistral_list", None),
    "mistral-small-3.2": ("mistral", None),
    "ministral-3": ("mistral", "[THINK]"),
    "gpt-oss": ("harmony", None),
}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": dict(WEATHER.parameters)},
}
QUESTION = {"role": "user", "content": "Weather?"}

# As the templates of Llama 3 and Gemma 4 write a call; those themselves are not ours to keep.
LLAMA = """{{- bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>

{% if message.tool_calls %}{"name": "{{ message.tool_calls[0].function.name }}", "parameters": {{
 message.tool_calls[0].function.arguments | tojson }}}{% else %}{{ message.content }}{% endif %}<|eot_id|>{% endfor %}
{%- if tools %}{{ tools | tojson }}{% endif %}"""


def template_of(name: str) -> ChatTemplate:
    source = TEMPLATES[name].read_text(encoding="utf-8")
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>", special_tokens=SpecialTokens([]))


def called(arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "a1", "type": "function", "function": function}]}


def written(template: ChatTemplate, arguments: dict[str, Any]) -> str:
    """What a template writes for an answer that is a call."""
    prompt = template.render([QUESTION], tools=[TOOL]).text
    whole = template.render([QUESTION, called(arguments)], tools=[TOOL], add_generation_prompt=False).text
    while not whole.startswith(prompt):
        prompt = prompt[:-1]  # templates that think write their thoughts into the prompt, and none where none are
    return whole[len(prompt) :]


def test_every_template_is_told_apart() -> None:
    assert set(SPOKEN) == set(TEMPLATES)
    for name, path in TEMPLATES.items():
        source = path.read_text(encoding="utf-8")
        format, thoughts = tool_formats.find(source), reasoning.find(source)
        assert (format and format.name, thoughts and thoughts.opens) == SPOKEN[name], name


def test_formats_have_names_of_their_own() -> None:
    assert {format.name for format in tool_formats.FORMATS} == set(SAMPLES)
    assert len(tool_formats.FORMATS) == len(SAMPLES)


@pytest.mark.parametrize("name", sorted(name for name, (format, _) in SPOKEN.items() if format))
@pytest.mark.parametrize("arguments", [ARGUMENTS, {"city": "Ulm"}, {}])
def test_what_a_template_writes_is_read_back(name: str, arguments: dict[str, Any]) -> None:
    template = template_of(name)
    answer = AnswerFormat.of(template)
    answer.check_tools(template)
    (call,) = calls_of(parse(answer.parser([WEATHER]), list(written(template, arguments))))
    assert (call.name, call.arguments) == ("get_weather", arguments)


def test_what_a_template_of_llama_writes_is_read_back() -> None:
    template = ChatTemplate(LLAMA, bos_token="<s>", eos_token="", special_tokens=SpecialTokens([]))
    answer = AnswerFormat.of(template)
    whole = template.render([called(ARGUMENTS)]).text
    (call,) = calls_of(parse(answer.parser([WEATHER]), [whole.partition("<|end_header_id|>\n\n")[2]]))
    assert call.arguments == ARGUMENTS


def test_ids_of_calls_fit_mistrals_templates() -> None:
    template = template_of("mistral-small-3.2")
    result = {"role": "tool", "tool_call_id": "call_of_another_provider", "content": "21"}
    call = called({})
    call["tool_calls"][0]["id"] = "call_of_another_provider"
    text = template.render([QUESTION, call, result], tools=[TOOL]).text
    call_id = text.partition("[CALL_ID]")[2][:9]
    assert call_id.isalnum()
    assert f"[TOOL_RESULTS]{call_id}[TOOL_CONTENT]21" in text
    call["tool_calls"][0]["id"] = result["tool_call_id"] = "abcdefghi"
    assert "[CALL_ID]abcdefghi[ARGS]" in template.render([QUESTION, call, result], tools=[TOOL]).text


def test_thoughts_before_a_call_go_back_under_the_templates_own_name() -> None:
    thought = {"reasoning_content": "They want the weather."}
    text = template_of("gpt-oss").render([QUESTION, {**called({}), **thought}], tools=[TOOL]).text
    assert "<|channel|>analysis<|message|>They want the weather.<|end|>" in text
    both = template_of("gpt-oss").render([QUESTION, {**called({}), **thought, "content": "Wait."}], tools=[TOOL]).text
    assert "<|channel|>analysis<|message|>Wait.<|end|>" in both
    assert "They want" in template_of("qwen3").render([QUESTION, {**called({}), **thought}], tools=[TOOL]).text


@pytest.mark.parametrize(
    ("name", "variables", "begun"),
    [
        ("qwen3.5", {}, "<think>"),
        ("qwen3.5", {"enable_thinking": False}, ""),
        ("qwen3", {}, ""),
        ("qwen3", {"enable_thinking": False}, ""),
        ("ministral-3", {}, ""),
    ],
)
def test_thoughts_that_a_template_begins(name: str, variables: dict[str, Any], begun: str) -> None:
    template = template_of(name)
    prompt = template.render([QUESTION], variables=variables).text
    assert AnswerFormat.of(template).after(prompt).begun == begun


def test_a_question_about_thoughts_begins_none() -> None:
    template = template_of("qwen3")
    prompt = template.render([{"role": "user", "content": "What is <think>"}]).text
    assert AnswerFormat.of(template).after(prompt).begun == ""
    assert AnswerFormat.of(template).after(prompt, continued="<think>Hm").begun == "<think>Hm"


def test_a_template_without_tools_is_refused() -> None:
    template = template_of("smollm2")
    with pytest.raises(TemplateError, match="no place for tools") as caught:
        AnswerFormat.of(template).check_tools(template)
    assert "response_format" in caught.value.hint


def test_a_format_that_is_not_known_is_refused() -> None:
    template = ChatTemplate("{{ tools }}", bos_token="", eos_token="", special_tokens=SpecialTokens([]))
    with pytest.raises(TemplateError, match="a format that is not known") as caught:
        AnswerFormat.of(template).check_tools(template)
    assert "hermes, llama3_json" in caught.value.hint


def test_a_template_that_refuses_tools_shows_none() -> None:
    source = "{% if tools %}{{ raise_exception('No tools') }}{% endif %}"
    assert not ChatTemplate(source, bos_token="", eos_token="", special_tokens=SpecialTokens([])).shows_tools


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_markers_that_are_control_tokens_reach_the_parser(name: str) -> None:
    sample = SAMPLES[name]
    assert sample.answer.tool_format is not None
    markers = [*sample.answer.tool_format.markers, "<|other|>"]
    tokens = tokenizer(markers)
    shown = sample.answer.shown(tokens.special_tokens)
    assert shown == set(markers) - {"<|other|>"}
    decoder, parser = Decoder(tokens, shown=shown), sample.parser()
    pieces = [decoder.push(token_id) for token_id in ids_of(tokens, "<|other|>" + sample.call)]
    events = parse(parser, pieces)
    assert [call.arguments for call in calls_of(events)] == [ARGUMENTS]
    assert text_of(events) == ""
