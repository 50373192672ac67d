"""Grammars: what they let through, what they refuse, and that models cannot help but fit them."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import ARGUMENTS, CITY, SAMPLES, TAGS, TOOLS, WEATHER, calls_of, parse
from kaiwa.errors import InvalidOption, KaiwaError
from kaiwa.text.answers.answer_format import AnswerFormat
from kaiwa.text.constraints.grammar import Grammar
from kaiwa.text.constraints.grammars import MAX_KEPT, Grammars
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.text.tool import Tool, ToolChoice
from kaiwa.text.tool_formats import FORMATS, hermes, qwen3_coder
from marked_tokens import END, ids_of, tokenizer

MARKERS = sorted({marker for format in FORMATS for marker in format.markers} | {"<think>", "</think>"})
WITH_MARKERS, PLAIN = tokenizer(MARKERS), tokenizer()
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", params=["markers are tokens", "markers are letters"])
def tokens(request: pytest.FixtureRequest) -> Tokenizer:
    return WITH_MARKERS if request.param == "markers are tokens" else PLAIN


@pytest.fixture(scope="module")
def grammars(tokens: Tokenizer) -> Grammars:
    return Grammars(tokens)


def is_allowed(mask: bytes | None, token_id: int) -> bool:
    return mask is None or bool(mask[token_id // 8] >> token_id % 8 & 1)


def follow(grammar: Grammar, tokens: Tokenizer, text: str) -> str:
    """How much of a text a grammar lets through, with "$" where the answer may end after all of it."""
    ids = ids_of(tokens, text)
    for place, token_id in enumerate(ids):
        if not is_allowed(grammar.allowed(), token_id):
            return tokens.decode(ids[:place])
        grammar.push(token_id)
    return text + ("$" if is_allowed(grammar.allowed(), END) else "")


def whole(grammar: Grammar, tokens: Tokenizer, text: str) -> bool:
    return follow(grammar, tokens, text) == text + "$"


def calls(grammars: Grammars, answer: AnswerFormat, mode: Any = "required", **options: Any) -> Grammar:
    return grammars.calls(TOOLS, ToolChoice(mode), answer=answer, **options)


@pytest.mark.parametrize("name", sorted(SAMPLES))
class TestCalls:
    def test_a_call_is_required(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if name == "harmony" and tokens is PLAIN:
            pytest.skip("the format is made of tokens")
        assert whole(calls(grammars, sample.answer), tokens, sample.call)
        assert follow(calls(grammars, sample.answer), tokens, sample.before + "No.") != sample.before + "No.$"

    def test_a_call_is_possible(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if name == "harmony" and tokens is PLAIN:
            pytest.skip("the format is made of tokens")
        assert whole(calls(grammars, sample.answer, "auto"), tokens, sample.call)
        assert whole(calls(grammars, sample.answer, "auto"), tokens, sample.before + "No <b> {.")
        if name not in ("harmony", "llama3_json"):
            assert whole(calls(grammars, sample.answer, "auto"), tokens, f"Well. {sample.call}")
        wrong = sample.call.replace("get_weather", "get_wether")
        assert follow(calls(grammars, sample.answer, "auto"), tokens, wrong).endswith("get_we")

    def test_arguments_fit_the_schema(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if name == "harmony" and tokens is PLAIN:
            pytest.skip("the format is made of tokens")
        for mode in ("auto", "required"):
            for right, wrong in (("2", "x"), ("days", "daze")):
                start, _, rest = sample.call.rpartition(right) if right == "days" else sample.call.rpartition("2")
                let_through = follow(calls(grammars, sample.answer, mode), tokens, start + wrong + rest)
                assert let_through in (start, start + "da")

    def test_one_tool_is_named(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if name == "harmony" and tokens is PLAIN:
            pytest.skip("the format is made of tokens")
        for named, length in (
            ("get_weather", len(sample.call) + 1),
            ("no_arguments", sample.call.index("get_weather")),
        ):
            grammar = grammars.calls(TOOLS, ToolChoice("required", named), answer=sample.answer)
            assert len(follow(grammar, tokens, sample.call)) == length

    def test_several_calls(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        assert sample.answer.tool_format is not None
        if sample.answer.tool_format.is_single or sample.answer.tool_format.brackets[0]:
            pytest.skip("one call, or one list of them")
        twice = sample.call + sample.between + sample.call
        for mode in ("auto", "required"):
            assert whole(calls(grammars, sample.answer, mode), tokens, twice)
            single = follow(calls(grammars, sample.answer, mode, is_parallel=False), tokens, twice)
            assert single.startswith(sample.call)
            assert single != twice + "$"

    def test_thoughts_come_before(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if sample.answer.reasoning is not TAGS:
            pytest.skip("other markers")
        for mode in ("auto", "required"):
            thought = f"<think>\nHm {{.</think>\n\n{sample.call}"
            assert whole(calls(grammars, sample.answer, mode), tokens, thought)
            begun = AnswerFormat(sample.answer.tool_format, TAGS, "<think>")
            assert whole(calls(grammars, begun, mode), tokens, thought.removeprefix("<think>"))

    def test_a_call_or_json(self, grammars: Grammars, tokens: Tokenizer, name: str) -> None:
        sample = SAMPLES[name]
        if name == "harmony" and tokens is PLAIN:
            pytest.skip("the format is made of tokens")
        for text in (sample.call, sample.before + '{"name": "Ada", "age": 36}'):
            assert whole(calls(grammars, sample.answer, "auto", schema=PERSON), tokens, text)


def test_a_list_of_calls() -> None:
    sample, grammars = SAMPLES["mistral_list"], Grammars(WITH_MARKERS)
    two = sample.call[:-1] + ", " + sample.call.partition("[{")[2].join(["{", ""])
    assert len(calls_of(parse(sample.parser(), [two]))) == 2
    for mode in ("auto", "required"):
        assert whole(calls(grammars, sample.answer, mode), WITH_MARKERS, two)
        one = follow(calls(grammars, sample.answer, mode, is_parallel=False), WITH_MARKERS, two)
        assert one == sample.call[:-1]


def test_nothing_is_masked_before_a_call() -> None:
    sample = SAMPLES["hermes"]
    grammar = calls(Grammars(WITH_MARKERS), sample.answer, "auto")
    for token_id in ids_of(WITH_MARKERS, "<think>a <tool_call> is not meant here</think>Well."):
        assert grammar.allowed() is None
        assert grammar.forced() == ()
        grammar.push(token_id)
    for token_id in ids_of(WITH_MARKERS, sample.call):
        grammar.push(token_id)
    assert grammar.allowed() is None, "the call is whole, and text may follow"
    assert not grammar.is_done


def test_tokens_that_must_come_are_forced() -> None:
    grammar = calls(Grammars(WITH_MARKERS), SAMPLES["hermes"].answer)
    begun = AnswerFormat(hermes.FORMAT)
    grammar = grammars_of_one().calls([WEATHER], ToolChoice("required"), answer=begun)
    (marker,) = ids_of(WITH_MARKERS, "<tool_call>")
    assert grammar.forced()[0] == marker
    for token_id in grammar.forced():
        assert is_allowed(grammar.allowed(), token_id)
        grammar.push(token_id)
    assert grammar.forced() == ()


def grammars_of_one() -> Grammars:
    return Grammars(WITH_MARKERS)


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ('{"name": "Ada", "age": 36}', True),
        ('{"name":"Ada","age":36}', True),
        ('{\n  "name": "Ada",\n  "age": 36\n}', True),
        ('{"age": 36, "name": "Ada"}', False),
        ('{"name": "Ada", "age": 360}', False),
        ('{"name": "Ada Lovelace", "age": 36}', False),
        ('{"name": "Ada", "age": 36, "x": 1}', False),
        ('{  \n\n  "name": "Ada", "age": 36}', False),
        ("Ada", False),
    ],
)
def test_a_schema(grammars: Grammars, tokens: Tokenizer, text: str, is_whole: bool) -> None:
    assert whole(grammars.json_schema(PERSON), tokens, text) is is_whole


def test_any_object(grammars: Grammars, tokens: Tokenizer) -> None:
    for text in ("{}", '{"a": [1, null, {"b": "c"}]}'):
        grammar = grammars.json_object()
        assert whole(grammar, tokens, text)
        assert grammar.is_done
    assert not whole(grammars.json_object(), tokens, "[1]")


def test_patterns_and_choices(grammars: Grammars, tokens: Tokenizer) -> None:
    assert whole(grammars.regex(r"\d{3}/[a-c]+"), tokens, "123/abc")
    assert follow(grammars.regex(r"\d{3}/[a-c]+"), tokens, "12a") == "12"
    assert whole(grammars.choice(["yes", "no", 'per"haps\n']), tokens, 'per"haps\n')
    assert follow(grammars.choice(["yes", "no"]), tokens, "nay") == "n"


def test_an_answer_after_thoughts(grammars: Grammars, tokens: Tokenizer) -> None:
    answer = AnswerFormat(None, TAGS)
    assert whole(grammars.json_object(answer=answer), tokens, "<think>\nHm {</think>\n\n{}")
    assert whole(grammars.json_object(answer=answer), tokens, "{}")
    begun = AnswerFormat(None, TAGS, "<think>")
    assert whole(grammars.json_object(answer=begun), tokens, "\nHm {</think>\n\n{}")
    assert not whole(grammars.json_object(answer=begun), tokens, "{}")


def test_an_end_is_an_end(grammars: Grammars) -> None:
    grammar = grammars.regex("a*")
    grammar.push(ord("a"))
    assert not grammar.is_done
    grammar.push(END)
    assert grammar.is_done


def test_a_token_that_was_not_allowed_is_an_error(grammars: Grammars) -> None:
    grammar = grammars.json_object()
    with pytest.raises(KaiwaError, match="the token 97 does not fit"):
        grammar.push(ord("a"))


def test_a_grammar_that_fails_says_so_instead_of_ending_the_answer(grammars: Grammars) -> None:
    grammar = grammars.json_object()
    with pytest.raises(KaiwaError):
        grammar.push(ord("a"))
    with pytest.raises(KaiwaError, match="too complex to go on"):
        grammar.allowed()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"items": {"pattern": "(?=x)", "type": "string"}}}}, "the schema.properties.a.items can"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string", "format": "foo"}}}, "the schema.[$]defs.x .*: foo"),
        ({"anyOf": [{"type": "strin"}]}, r"the schema.anyOf\[0\] cannot be enforced: Invalid type: strin"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "the schema cannot be enforced: Unsatisfiable"),
        ({"$ref": "http://somewhere/else"}, "the schema cannot be enforced: Resource"),
        ({"properties": {"a": {"not": {}}}}, "the schema.properties.a has 'not'"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_path(grammars: Grammars, schema: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        grammars.json_schema(schema)


def test_what_is_no_pattern_choice_or_tool_is_refused(grammars: Grammars) -> None:
    with pytest.raises(InvalidOption, match=r"the pattern '\[a' cannot be enforced: unclosed character class"):
        grammars.regex("[a")
    with pytest.raises(InvalidOption, match="look-around"):
        grammars.regex("(?=a)b")
    with pytest.raises(InvalidOption, match="10,001 characters"):
        grammars.regex("a" * 10_001)
    for texts in ([], "yes", ["a", ""], [1]):
        with pytest.raises(InvalidOption, match="is no choice"):
            grammars.choice(texts)  # type: ignore[arg-type]
    tool = Tool("f", {"type": "object", "properties": {"a": {"not": {}}}})
    with pytest.raises(InvalidOption, match=r"f.parameters.properties.a has 'not'"):
        grammars.calls([tool], ToolChoice("auto"), answer=AnswerFormat(hermes.FORMAT))


def test_recursive_schemas(grammars: Grammars, tokens: Tokenizer) -> None:
    tree = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
    assert whole(grammars.json_schema(tree), tokens, "[[], [[]]]")


def test_masks_are_as_wide_as_the_engines_vocabulary() -> None:
    for vocab_size in (WITH_MARKERS.vocab_size, 400, 401):
        grammars = Grammars(WITH_MARKERS, vocab_size=vocab_size)
        mask = grammars.json_object().allowed()
        assert mask is not None
        assert len(mask) == (vocab_size + 7) // 8
        assert [token_id for token_id in range(vocab_size) if is_allowed(mask, token_id)] == [ord("{")]


def test_compiled_grammars_are_kept_and_bounded() -> None:
    grammars = Grammars(PLAIN)
    for number in range(MAX_KEPT + 5):
        grammars.choice([f"a{number}"])
    assert len(grammars._kept) == MAX_KEPT
    first, second = grammars.choice(["ab"]), grammars.choice(["ab"])
    first.push(ord("a"))
    assert second.allowed() != first.allowed(), "they share no state"


def test_many_threads_may_ask() -> None:
    grammars = Grammars(PLAIN)
    made: list[Grammar] = []
    threads = [threading.Thread(target=lambda: made.append(grammars.json_object())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8


def babble(grammar: Grammar, dice: random.Random, *, limit: int = 2000) -> list[int]:
    """What a model says that chooses among the allowed tokens without a thought, and comes to an end if it may."""
    said: list[int] = []
    while not grammar.is_done:
        mask = grammar.allowed()
        assert mask is not None
        allowed = [token_id for token_id in range(len(mask) * 8) if is_allowed(mask, token_id)]
        assert allowed
        ending = [token_id for token_id in allowed if token_id in (END, *b'"}]')]
        token_id = dice.choice(ending if ending and len(said) > limit // 4 else allowed)
        said.append(token_id)
        assert len(said) < limit
        grammar.push(token_id)
    return [token_id for token_id in said if token_id != END]


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string", "maxLength": 5},
            {"type": "integer", "minimum": -5, "maximum": 100},
            {"type": "boolean"},
            {"enum": ["a", 1, None]},
            {"type": "string", "nullable": True, "maxLength": 2},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items, "maxItems": 3}),
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3).map(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties)[:1],
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.integers(0, 2**32))
def test_whatever_a_model_says_fits_the_schema(schema: dict[str, Any], seed: int) -> None:
    said = PLAIN.decode(babble(GRAMMARS.json_schema(schema), random.Random(seed)))
    assert fits(json.loads(said), schema)


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"harmony"}))  # whose messages before a call have no end
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_a_model_says_is_a_call(name: str, seed: int) -> None:
    sample = SAMPLES[name]
    answer = AnswerFormat(sample.answer.tool_format)
    tool = Tool(
        "f",
        {
            "type": "object",
            "properties": {
                "kind": {"enum": ["one", "two"]},
                "number": {"type": "integer", "minimum": 0, "maximum": 9},
                "flags": {"type": "array", "items": {"type": "boolean"}},
                "inner": {"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "boolean"}}},
            },
            "required": ["number"],
        },
    )
    grammar = MARKED.calls([tool], ToolChoice("required"), answer=answer, is_parallel=False)
    said = WITH_MARKERS.decode(babble(grammar, random.Random(seed)))
    (call,) = calls_of(parse(answer.parser([tool]), [said]))
    assert call.name == "f"
    assert call.arguments["number"] in range(10)
    assert call.arguments.get("kind", "one") in ("one", "two")
    assert set(call.arguments) <= {"kind", "number", "flags", "inner"}


GRAMMARS, MARKED = Grammars(PLAIN), Grammars(WITH_MARKERS)


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits one of the schemas above: a second opinion, written without llguidance."""
    if "enum" in schema:
        return value in schema["enum"]
    if value is None:
        return bool(schema.get("nullable"))
    kind = schema["type"]
    if kind == "array":
        return isinstance(value, list) and len(value) <= 3 and all(fits(item, schema["items"]) for item in value)
    if kind == "object":
        return (
            isinstance(value, dict)
            and set(schema["required"]) <= set(value) <= set(schema["properties"])
            and all(fits(item, schema["properties"][key]) for key, item in value.items())
        )
    if kind == "string":
        return isinstance(value, str) and len(value) <= schema["maxLength"]
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool) and schema["minimum"] <= value <= schema["maximum"]


def test_texts_in_tags_may_say_anything() -> None:
    answer = AnswerFormat(qwen3_coder.FORMAT)
    grammar = MARKED.calls([WEATHER], ToolChoice("required"), answer=answer)
    assert whole(grammar, WITH_MARKERS, SAMPLES["qwen3_coder"].call)
    assert CITY in ARGUMENTS.values()
