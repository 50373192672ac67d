"""The protocol as TypeScript: one interface for each record, one union for each choice between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from kaiwa.apps.protocol.commands import MAX_TEXT_CHARS, Command
from kaiwa.apps.protocol.events import Event
from kaiwa.apps.protocol.frames import PROTOCOL_VERSION, Frame
from kaiwa.apps.protocol.http import AuthInfo, Login, LoginWay
from kaiwa.apps.protocol.records import File, Part, Record
from kaiwa.apps.protocol.widgets import Widget

_UNIONS: Mapping[str, Any] = {"Part": Part, "Widget": Widget, "Event": Event, "Frame": Frame, "Command": Command}
_CONSTANTS = {"PROTOCOL_VERSION": PROTOCOL_VERSION, "MAX_TEXT_CHARS": MAX_TEXT_CHARS}
_ALONE: Sequence[type[Record]] = (File, AuthInfo, LoginWay, Login)
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_HEADER = "// Made by `python -m kaiwa.apps.protocol` from src/kaiwa/apps/protocol. Change it there.\n"


def json_schema() -> dict[str, Any]:
    """Every record by name, as JSON schema. Of what a page sends, fields with a default may be left out."""
    schemas: dict[str, Any] = {}
    for name, union in _UNIONS.items():
        schema = TypeAdapter(union).json_schema(mode=_mode(name))
        schemas |= schema.pop("$defs")
        schemas[name] = schema
    inputs: list[tuple[type[Record], JsonSchemaMode]] = [(record, "serialization") for record in _ALONE]
    schemas |= models_json_schema(inputs)[1]["$defs"]
    return {"version": PROTOCOL_VERSION, "$defs": dict(sorted(schemas.items()))}


def _mode(name: str) -> JsonSchemaMode:
    return "validation" if name == "Command" else "serialization"


def typescript() -> str:
    """The module that a page is written against."""
    constants = (
        f"export const PROTOCOL_VERSION = {PROTOCOL_VERSION};\nexport const MAX_TEXT_CHARS = {MAX_TEXT_CHARS};\n"
    )
    declared = [_declaration(name, schema) for name, schema in json_schema()["$defs"].items()]
    return "\n".join([_HEADER, constants, *declared])


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    comment = _comment(schema.get("description", ""), "")
    if schema.get("type") != "object":
        return f"{comment}export type {name} = {_type(schema)};\n"
    required = schema.get("required", ())
    lines = []
    for field, of in schema.get("properties", {}).items():
        is_there = field in required or "const" in of
        lines.append(f"  {field}{'' if is_there else '?'}: {_type(of)};")
    return "\n".join([f"{comment}export interface {name} {{", *lines, "}\n"])


def _comment(text: str, indent: str) -> str:
    if not text:
        return ""
    if "\n" not in text:
        return f"{indent}/** {text} */\n"
    lines = "\n".join(f"{indent} * {line}".rstrip() for line in text.splitlines())
    return f"{indent}/**\n{lines}\n{indent} */\n"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if schema.get("type") == "array":
        inner = _type(schema["items"])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, Mapping) else 'unknown'}>"
    return _SCALARS.get(str(schema.get("type")), "unknown")
