"""Chat templates: rendered as transformers renders them, and refused with reasons."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from conversations import CALL, CONVERSATIONS, RESULT, TOOLS, assistant, system, user
from kaiwa.errors import TemplateError
from kaiwa.messages import normalize
from kaiwa.text.templates.chat_template import MAX_NESTING, MAX_SOURCE, ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens
from kaiwa.text.tokens.tokenizer import Tokenizer
from tiny_vocabularies import byte_level

GOLDEN = Path(__file__).parents[2] / "golden" / "text"
TEMPLATES = sorted((GOLDEN / "templates").glob("*.jinja"))
NOTHING_SPECIAL = SpecialTokens([])


def template(source: str, *special: str) -> ChatTemplate:
    tokens = SpecialTokens(SpecialToken(token_id, text, is_control=True) for token_id, text in enumerate(special))
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>", special_tokens=tokens)


def render(source: str, *messages: dict[str, Any], **options: Any) -> str:
    return template(source).render(messages or [user("Hi")], **options).text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("shape", ["without tools", "with tools", "no answer"])
def test_conversations_render_as_transformers_renders_them(path: Path, name: str, shape: str) -> None:
    expected = json.loads((GOLDEN / "rendered" / f"{path.stem}.json").read_text(encoding="utf-8"))[name][shape]
    model = template(path.read_text(encoding="utf-8"), "<|im_start|>", "<|im_end|>", "[INST]", "[/INST]", "<s>", "</s>")
    options: dict[str, Any] = {"with tools": {"tools": TOOLS}, "no answer": {"add_generation_prompt": False}}
    assert expected is not None
    assert model.render(CONVERSATIONS[name], **options.get(shape, {})).text == expected


def test_there_is_a_golden_text_for_every_template() -> None:
    assert len(TEMPLATES) == 4
    assert {path.stem for path in TEMPLATES} == {path.stem for path in (GOLDEN / "rendered").glob("*.json")}


def test_a_template_by_hand() -> None:
    source = "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}{{ eos_token }}"
    assert render(source, user(" Hi "), assistant("Ho")) == "[user] Hi\n[assistant] Ho\n</s>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% if true %}\na\n{% endif %}\nb", "a\nb"),
        ("  {% set x = 1 %}\nb", "b"),
        ("{{ {'a': '<b> & é', 'b': [1, none, true]} | tojson }}", '{"a": "<b> & é", "b": [1, null, true]}'),
        ("{{ {'b': 1, 'a': 'é'} | tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": "\\u00e9", "b": 1}'),
        ("{{ [1, [2]] | tojson(indent=2) }}", "[\n  1,\n  [\n    2\n  ]\n]"),
        ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
        ("{{ '😀' | tojson(ensure_ascii=true) }}", '"\\ud83d\\ude00"'),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "13"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% for k, v in {'a': 1} | items %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{% for i in 'ab' %}{{ loop.previtem }}{{ loop.index }}{{ loop.last }}{% endfor %}", "1Falsea2True"),
        ("{% for i in 'abc' %}{{ loop.length }}{{ loop.revindex }}{{ loop.nextitem }}{% endfor %}", "33b32c31"),
        ("{% macro f(x, y='!') %}{{ x }}{{ y }}{% endmacro %}{{ f('a') }}", "a!"),
        ("{% set n = namespace(x=1) %}{% for i in [5] %}{% set n.x = i %}{% endfor %}{{ n.x }}", "5"),
        ("{% generation %}a{{ 1 }}{% endgeneration %}", "a1"),
        ("{{ dict(a=1).a }}{{ dict.fromkeys }}", "1"),
        ("{{ missing }}{{ messages[0].missing }}{{ missing is defined }}", "False"),
        ("{{ 'a' ~ 1 ~ none ~ ['x'] }}", "a1None['x']"),
        ("{{ ([1, 2, 3])[1:] }}{{ 'abc'[::-1] }}", "[2, 3]cba"),
        ("{{ 'a-b'.split('-') | join('+') }}{{ [{'n': 1}, {'n': 2}] | map(attribute='n') | sum }}", "a+b3"),
        ("{{ [{'n': 1}, {'n': 2}] | selectattr('n', 'equalto', 2) | list }}", "[{'n': 2}]"),
        ("{{ [3, 1, 2] | sort | first }}{{ 'xyx'.replace('x', 'z') }}{{ '%s-%d' | format('a', 7) }}", "1zyza-7"),
        ("{{ '{}:{n}'.format(1, n=2) }}{{ 7 // 2 }}{{ 2 ** 5 }}{{ 7 % 4 }}{{ '%05d' % 7 }}", "1:2332300007"),
        ("{% for x in [1, [2]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "12"),
        ("{% for x in [] %}a{% else %}b{% endfor %}{{ 'b' in 'abc' }}", "bTrue"),
        ("{{ 'a\nb' | indent(2) }}{{ 2.345 | round(1) }}{{ 'abc' | upper | length }}", "a\n  b2.33"),
        ("{% call(x) f() %}{{ x }}{% endcall %}{% macro f() %}{{ caller(1) }}{% endmacro %}", None),
    ],
)
def test_what_templates_use(source: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(TemplateError, match="'f' is undefined"):
            render(source)
    else:
        assert render(source) == expected


def test_the_date_stays_the_same_through_a_conversation() -> None:
    source = "{{ strftime_now('%d %B %Y') }}"
    assert render(source, now=datetime(2024, 7, 26)) == "26 July 2024"
    before = datetime.now()
    assert render(source) in {f"{moment:%d %B %Y}" for moment in (before, datetime.now())}


def test_variables_and_documents_reach_the_template() -> None:
    source = "{{ enable_thinking }}{{ documents[0].title }}{{ tools }}"
    documents = [{"title": "T", "text": "x"}]
    assert render(source, documents=documents, variables={"enable_thinking": False}) == "FalseTNone"


def test_a_final_message_is_continued() -> None:
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</end>{% endfor %}{{ add_generation_prompt }}"
    assert render(source, user("a"), assistant("b "), continue_final_message=True) == "<user>a</end><assistant>b "
    with pytest.raises(TemplateError, match="leaves the final message out"):
        render("{{ messages[0].content }}", user("a"), assistant("b"), continue_final_message=True)
    with pytest.raises(TemplateError, match="no final message"):
        template("x").render([], continue_final_message=True)


def test_keys_without_a_value_are_left_out() -> None:
    assert render("{{ messages[0].content is defined }}", {"role": "assistant", "content": None}) == "False"


def test_messages_of_ours_and_dictionaries_are_the_same() -> None:
    source = "{% for m in messages %}{{ m.role }}{{ m.content }}{{ m.name }}{% endfor %}"
    given = [{"role": "user", "content": "a", "name": "n"}]
    assert template(source).render(normalize(given)) == template(source).render(given)


def test_developer_is_system_where_the_template_does_not_know_it() -> None:
    developer = {"role": "developer", "content": "a"}
    assert render("{{ messages[0].role }}", developer) == "system"
    assert render("{{ messages[0].role }}{# developer #}", developer) == "developer"


def test_a_system_message_joins_the_first_user_message_where_none_is_taken() -> None:
    refusing = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
        "{{ m.role }}:{{ m.content }};{% endfor %}"
    )
    assert render(refusing, system("Be kind."), user("Hi")) == "user:Be kind.\n\nHi;"
    with pytest.raises(TemplateError, match="No system role"):
        render(refusing, user("Hi"), system("Be kind."))


@pytest.mark.parametrize("arguments", [{"city": "Köln"}, '{"city": "Köln"}'])
def test_arguments_have_the_shape_that_the_template_takes(arguments: Any) -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    turns = [user("a"), assistant("", tool_calls=[call])]
    head = "{% for m in messages %}{% for c in m.tool_calls or [] %}"
    as_object = (
        head + "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}"
    )
    as_text = head + "{{ 'args: ' + c.function.arguments }}{% endfor %}{% endfor %}"
    as_json = head + "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
    assert render(as_object, *turns) == "city=Köln"
    assert render(as_text, *turns) == 'args: {"city": "Köln"}'
    assert render(as_json, *turns) == '{"city": "Köln"}'


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{broken"}}
    source = "{% for c in messages[1].tool_calls %}{{ c.function.arguments }}{% endfor %}"
    assert render(source, user("a"), assistant("", tool_calls=[call])) == "{broken"


def test_a_model_without_a_template_says_so() -> None:
    tokenizer = Tokenizer.from_gguf(byte_level())
    with pytest.raises(TemplateError, match="no chat template") as raised:
        ChatTemplate.of(tokenizer)
    assert "instruct" in raised.value.hint
    assert ChatTemplate.of(tokenizer, "{{ bos_token }}").render([user("")]).text == "<|im_start|>"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('Roles must alternate') }}", "refuses this conversation: Roles must alternate"),
        ("a\n\n{% if %}", "line 3 of the chat template cannot be read"),
        ("{% unknown %}", "line 1 .* unknown tag 'unknown'"),
        ("{{ 'x' | pprint }}", "No filter named 'pprint'"),
        ("{{ missing.attribute }}", "'missing' is undefined"),
        ("{{ 'a' + 1 }}", "failed: can only concatenate str"),
        ("{% include 'x' %}", "failed: no loader"),
        ("x" * (MAX_SOURCE + 1), "65,537 characters"),
    ],
)
def test_what_a_template_cannot_do_is_said(source: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        render(source)


def test_conversations_that_nest_without_end_are_refused() -> None:
    deep: Any = "x"
    for _ in range(MAX_NESTING):
        deep = [deep]
    with pytest.raises(TemplateError, match="nest more than 64 levels"):
        render("{{ messages[0].x }}", {"role": "user", "content": "", "x": deep})


def test_objects_of_other_kinds_do_not_reach_the_template() -> None:
    assert render("{{ messages[0].x }}", {"role": "user", "content": "", "x": Path()}).startswith("<")


def test_qwen3_still_takes_thoughts_out_of_earlier_turns() -> None:
    model = template(
        (GOLDEN / "templates" / "qwen3.jinja").read_text(), "<|im_start|>", "<|im_end|>", "<think>", "</think>"
    )
    turns = [user("a"), assistant("<think>\nhm\n</think>\n\nb"), user("c"), assistant("", tool_calls=[CALL]), RESULT]
    assert "hm" not in model.render(turns).text
