"""Templates that mean harm end in an error, soon and in little memory; honest ones do not notice the bounds."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from conversations import user
from kaiwa.errors import TemplateError
from kaiwa.text.templates import budget
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.special_tokens import SpecialTokens

MAX_SECONDS = 2.0  # of the processor, with reading the source and counting the memory
SHORT_SECONDS = 0.25
MAX_BYTES = 100 << 20


def grows(step: str, start: str = "'xx'", times: int = 99) -> str:
    """A template that replaces `s` by `step` over and over."""
    return (
        f"{{% set n = namespace(s={start}) %}}{{% for i in range({times}) %}}"
        f"{{% set s = n.s %}}{{% set n.s = {step} %}}{{% endfor %}}{{{{ n.s }}}}"
    )


HOSTILE = {
    "long range": "{% for i in range(10 ** 9) %}x{% endfor %}",
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "endless output": "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "text in a loop": "{% for i in range(99999) %}" + "y" * 60_000 + "{% endfor %}",
    "text in a loop, kept": "{% set s %}{% for i in range(99999) %}" + "y" * 60_000 + "{% endfor %}{% endset %}",
    "repetition": "{{ 'x' * 10 ** 9 }}",
    "repetition from the left": "{{ 10 ** 9 * 'x' }}",
    "list repetition": "{{ ([0] * 10 ** 9) | length }}",
    "doubling with +": grows("s + s"),
    "doubling with ~": grows("s ~ s"),
    "doubling with join": grows("[s, s] | join"),
    "doubling with str.join": grows("''.join([s, s])"),
    "doubling with %": grows("'%s%s' % (s, s)"),
    "doubling with format": grows("'{0}{0}'.format(s)"),
    "doubling with the format filter": grows("'%s%s' | format(s, s)"),
    "doubling with replace": grows("s.replace('x', 'xx')"),
    "doubling with the replace filter": grows("s | replace('x', 'xx')"),
    "doubling a list": grows("s + s", "[1]"),
    "lists in lists": grows("[s, s]"),
    "lists in lists as JSON": grows("[s, s]").replace("{{ n.s }}", "{{ n.s | tojson }}"),
    "lists in lists as text": grows("[s, s]").replace("{{ n.s }}", "{{ n.s | string | length }}"),
    "namespace that prints": grows("[s, s]").replace("{{ n.s }}", "{{ n }}"),
    "doubling a block": (
        "{% set n = namespace(s='x') %}{% for i in range(99) %}"
        "{% set s %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = s %}{% endfor %}"
    ),
    "slices kept": grows("[s, t[i:]]", times=9999).replace("{% set n ", "{% set t = 'x' * 900000 %}{% set n ", 1),
    "a growing list": grows("s + [i]", "[]", times=99999),
    "squaring": grows("s * s", "99"),
    "powers": "{{ 9 ** (9 ** 9) }}",
    "long numbers": "{{ ('1' * 900000) | int(0, 16) // 7 }}",
    "recursion": "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "recursion that branches": (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}"
    ),
    "recursive loop": (
        "{% for x in range(99999) recursive %}{% if loop.depth < 9 %}{{ loop(range(99999)) }}{% endif %}{% endfor %}"
    ),
    "a block in itself": "{% block a %}{{ self.a() }}{% endblock %}",
    "width with %": "{{ '%1000000000d' % 1 }}",
    "width as an argument": "{{ '%*d' % (10 ** 9, 1) }}",
    "width with format": "{{ '{:>1000000000}'.format(1) }}",
    "width with a nested format": "{{ '{:{}}'.format(1, 10 ** 9) }}",
    "width in a date": "{{ strftime_now('%9999999d') }}",
    "center": "{{ 'x' | center(10 ** 9) }}",
    "ljust": "{{ 'x'.ljust(10 ** 9) }}",
    "zfill": "{{ 'x'.zfill(10 ** 9) }}",
    "expandtabs": "{{ '\t'.expandtabs(10 ** 9) }}",
    "to_bytes": "{{ (1).to_bytes(10 ** 9, 'big') }}",
    "indent": "{{ 'x\ny' | indent(10 ** 9) }}",
    "JSON indent": "{{ [1] | tojson(indent=10 ** 9) }}",
    "JSON indent, deep": grows("[s, 1]", "[1]", times=900).replace(
        "{{ n.s }}", "{{ ([n.s] * 60) | tojson(indent=32) }}"
    ),
    "batch": "{{ [1] | batch(10 ** 9, 'x') | list }}",
    "slice filter": "{{ [1] | slice(10 ** 9) | list }}",
    "round": "{{ 1.5 | round(10 ** 9, 'ceil') }}",
    "lipsum": "{{ lipsum(10 ** 6) }}{{ missing() }}",
    "sorting long texts": "{% set s = 'X' * 900000 %}{{ ([s] * 99999) | sort | length }}",
    "searching long lists": "{% for i in range(40000) %}{% if -1 in l %}{% endif %}{% endfor %}".join(
        ["{% set l = range(40000) | list %}", ""]
    ),
    "searching without a loop": "{% set l = range(40000) | list %}{{ range(99999) | select('in', l) | list | length }}",
    "parentheses": "{{ " + "(" * 20_000 + ")" * 20_000 + " }}",
    "nested ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "nested loops in the source": "{% for i in [1] %}" * 60 + "{% endfor %}" * 60,
    "chain of filters": "{{ 'x'" + " | upper" * 7000 + " }}",
    "chain of signs": "{{ " + "-" * 60_000 + "1 }}",
}


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, bos_token="", eos_token="", special_tokens=SpecialTokens([]))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_are_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_SECONDS", SHORT_SECONDS)  # the same stop, sooner: there are many of them
    model = template(HOSTILE[name])
    started = time.thread_time()
    tracemalloc.start(1)
    try:
        with pytest.raises(TemplateError):
            model.render([user("Hi")])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.thread_time() - started < MAX_SECONDS
    assert peak < MAX_BYTES


def test_a_template_has_two_seconds() -> None:
    model = template(HOSTILE["recursion that branches"])
    started = time.thread_time()
    with pytest.raises(TemplateError, match="runs for more than 2 seconds"):
        model.render([user("Hi")])
    assert 1.9 < time.thread_time() - started < 2.5


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ namespace(__init__=1) }}",
        "{% set n = namespace() %}{% set n.__class__ = 1 %}",
        "{{ raise_exception.__globals__.os }}",
        "{{ (messages | map(attribute='__class__') | list)[0].__name__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ self._TemplateReference__context.environment }}",
    ],
)
def test_templates_do_not_reach_python(source: str) -> None:
    model = template(source)
    with pytest.raises(TemplateError):
        model.render([user("Hi")])


def test_formats_do_not_reach_python() -> None:
    source = "{{ '{0.__class__}'.format(1) }}{{ '{x.__class__}'.format(x=1) }}"
    model = template(source)
    assert model.render([user("Hi")]).text == ""


def test_a_template_that_is_stopped_works_again() -> None:
    source = "{% for i in range(messages[0].content | int) %}{% for j in range(99999) %}{% endfor %}{% endfor %}ok"
    model = template(source)
    with pytest.raises(TemplateError, match="was stopped"):
        model.render([user("99999")])
    assert model.render([user("1")]).text == "ok"


def test_long_conversations_fit() -> None:
    source = "{% for m in messages %}{{ '<' + m.role + '>' + m.content | trim + '</>' }}{% endfor %}"
    model = template(source)
    turns = [user(f"Question {number}. " * 50) for number in range(2000)]
    assert len(model.render(turns).text) > 1_400_000
    assert len(model.render([user("word " * 1_000_000)]).text) > 4_900_000
