"""JSON schemas as people hand them over: checked, so that no keyword is ignored, and bounded in size.

Which keywords can be enforced is what llguidance says it implements (its docs/json_schema.md). Names are those of JSON
Schema, draft 2020-12, with OpenAPI's `nullable`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kaiwa.errors import InvalidOption, did_you_mean

MAX_CHARACTERS = 200_000
MAX_NESTING = 32

_ONE_SCHEMA = ("items", "additionalProperties")
_SEVERAL_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_ENFORCED = frozenset(
    """type enum const $ref required minItems maxItems minProperties maxProperties minLength maxLength pattern format
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf nullable""".split()  # noqa: SIM905
)
_ANNOTATIONS = frozenset(
    """title description default examples example deprecated readOnly writeOnly $schema $id $comment
    contentEncoding contentMediaType""".split()  # noqa: SIM905
)
"""Keywords that say nothing about which values fit."""

_UNENFORCED = frozenset(
    """not if then else dependentRequired dependentSchemas dependencies contains minContains maxContains uniqueItems
    propertyNames unevaluatedItems unevaluatedProperties additionalItems contentSchema $dynamicRef $dynamicAnchor
    $anchor $vocabulary""".split()  # noqa: SIM905
)
"""Keywords of JSON Schema that no grammar here can enforce."""

KEYWORDS = frozenset({*_ONE_SCHEMA, *_SEVERAL_SCHEMAS, *_NAMED_SCHEMAS, *_ENFORCED, *_ANNOTATIONS})


def checked(schema: Any, *, name: str) -> dict[str, Any]:
    """A schema that a grammar enforces in full; `nullable` is written as a type.

    Raises `InvalidOption` that names the first keyword that cannot be enforced or is unknown, and its path in `name`;
    or the limit that the schema is past.
    """
    if not isinstance(schema, Mapping):
        raise InvalidOption(
            f"{name} is {schema!r}, not a JSON schema", hint='pass an object such as {"type": "object"}'
        )
    found: dict[str, Any] = _checked(schema, name, 0)
    size = len(json.dumps(found))
    if size > MAX_CHARACTERS:
        raise InvalidOption(
            f"{name} has {size:,} characters, more than {MAX_CHARACTERS:,}", hint="use a smaller schema"
        )
    return found


def _checked(schema: Any, path: str, depth: int) -> Any:
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise InvalidOption(f"{path} is {schema!r}, not a JSON schema")
    if depth > MAX_NESTING:
        raise InvalidOption(f"{path} nests more than {MAX_NESTING} schemas deep", hint="use $ref for what repeats")
    written = {}
    for keyword, value in schema.items():
        _check_keyword(keyword, path)
        written[keyword] = _checked_value(keyword, value, f"{path}.{keyword}", depth + 1)
    return _with_null(written) if written.pop("nullable", False) is True else written


def _check_keyword(keyword: object, path: str) -> None:
    if keyword in KEYWORDS:
        return
    if keyword in _UNENFORCED:
        raise InvalidOption(
            f"{path} has {keyword!r}, which cannot be enforced while a model writes", hint="say it in other keywords"
        )
    raise InvalidOption(f"{path} has {keyword!r}, which is no keyword of JSON Schema", hint=_near(str(keyword)))


def _near(keyword: str) -> str:
    hint = did_you_mean(keyword, KEYWORDS | _UNENFORCED)
    return hint if hint.startswith("did") else "leave it out"


def _checked_value(keyword: str, value: Any, path: str, depth: int) -> Any:
    if keyword in _ONE_SCHEMA:
        return _checked(value, path, depth)
    if keyword in _SEVERAL_SCHEMAS:
        if not isinstance(value, (list, tuple)) or not value:
            raise InvalidOption(f"{path} is {value!r}, not a list of schemas")
        return [_checked(one, f"{path}[{index}]", depth) for index, one in enumerate(value)]
    if keyword in _NAMED_SCHEMAS:
        if not isinstance(value, Mapping):
            raise InvalidOption(f"{path} is {value!r}, not schemas by their names")
        return {key: _checked(one, f"{path}.{key}", depth) for key, one in value.items()}
    return value


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that takes null as well."""
    if isinstance(schema.get("type"), str) and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def subschemas(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A checked schema and all that it holds, each with its path, the inner ones first."""
    if not isinstance(schema, Mapping):
        return
    for keyword, value in schema.items():
        inner = f"{path}.{keyword}"
        if keyword in _ONE_SCHEMA:
            yield from subschemas(value, inner)
        elif keyword in _SEVERAL_SCHEMAS:
            for index, one in enumerate(value):
                yield from subschemas(one, f"{inner}[{index}]")
        elif keyword in _NAMED_SCHEMAS:
            for key, one in value.items():
                yield from subschemas(one, f"{inner}.{key}")
    yield path, schema
