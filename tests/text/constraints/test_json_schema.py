"""JSON schemas: no keyword is ignored, and what cannot be enforced is named with its path."""

from __future__ import annotations

from typing import Any

import pytest

from kaiwa.errors import InvalidOption
from kaiwa.text.constraints.json_schema import MAX_CHARACTERS, MAX_NESTING, checked, subschemas


def test_annotations_and_constraints_are_taken() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A",
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string", "maxLength": 3}, True], "description": "d"}},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"b": {"type": "integer", "minimum": 0, "default": 3}},
    }
    assert checked(schema, name="the schema") == schema


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"not": {}}, "the schema has 'not', which cannot be enforced"),
        ({"properties": {"a": {"items": {"uniqueItems": True}}}}, "the schema.properties.a.items has 'uniqueItems'"),
        ({"anyOf": [{}, {"if": {}}]}, r"the schema.anyOf\[1\] has 'if'"),
        ({"$defs": {"x": {"contains": {}}}}, "the schema.[$]defs.x has 'contains'"),
        ({"type": "string", "minlength": 3}, "has 'minlength', which is no keyword"),
        ({"properties": {"a": 3}}, "the schema.properties.a is 3, not a JSON schema"),
        ({"properties": []}, "the schema.properties is .*, not schemas by their names"),
        ({"oneOf": {}}, "the schema.oneOf is .*, not a list of schemas"),
        ({"anyOf": []}, "the schema.anyOf is .*, not a list of schemas"),
        ("x", "the schema is 'x', not a JSON schema"),
        ({"enum": ["x" * MAX_CHARACTERS]}, "200,0.. characters, more than 200,000"),
    ],
)
def test_what_cannot_be_enforced_is_named_with_its_path(schema: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        checked(schema, name="the schema")


def test_the_near_keyword_is_offered() -> None:
    with pytest.raises(InvalidOption) as caught:
        checked({"minlength": 3}, name="the schema")
    assert caught.value.hint == "did you mean 'minLength'?"


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = {"properties": {"not": {"type": "string"}, "if": {}, "nullable": {}}}
    assert checked(schema, name="the schema") == schema


def test_nullable_is_a_type() -> None:
    schema = {"properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string", "nullable": False}}}
    assert checked(schema, name="x")["properties"] == {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}
    union = checked({"anyOf": [{"type": "string"}], "nullable": True}, name="x")
    assert union == {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]}


def test_nesting_is_bounded() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(InvalidOption, match=f"more than {MAX_NESTING} schemas deep"):
        checked(deep, name="x")
    for _ in range(100_000):  # taken apart again, for Python would do it recursively
        deep = deep["items"]


def test_parts_come_before_what_holds_them() -> None:
    schema = {"properties": {"a": {"anyOf": [{}, {"items": {}}]}}, "items": {}}
    paths = [path for path, _ in subschemas(schema, "x")]
    assert paths == [
        "x.properties.a.anyOf[0]",
        "x.properties.a.anyOf[1].items",
        "x.properties.a.anyOf[1]",
        "x.properties.a",
        "x.items",
        "x",
    ]
