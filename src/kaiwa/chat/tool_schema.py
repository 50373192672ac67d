"""Functions as tools: the JSON schema of a function's arguments, from its signature and its Google-style docstring.

The schema is the one that transformers' `get_json_schema` makes, so that a model sees what it saw in training; but a
missing description is no error.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from kaiwa.errors import InvalidOption

_PLAIN = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}
_SECTIONS = ("Args:", "Returns:", "Raises:")
_ARGUMENT = re.compile(r"(\w+)(?:\s*\([^()]*\))?:\s*(.*)")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


ToolLike = Callable[..., Any] | Mapping[str, Any]
"""A function, or the schema of one that somebody else calls."""


def schemas(tools: Sequence[ToolLike]) -> list[Mapping[str, Any]]:
    """What a model is shown of the tools. Raises `InvalidOption` for a function that cannot be described."""
    return [describe(tool) if callable(tool) else tool for tool in tools]


def describe(function: Callable[..., Any]) -> dict[str, Any]:
    """A function as a tool: `{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`.

    The description of the function, its arguments and what it returns is taken from its docstring.
    An argument without a default is required. `(choices: ["a", "b"])` at the end of a description becomes an `enum`.

    Raises `InvalidOption` for an argument without a type, or with one that JSON does not have.
    """
    name = getattr(function, "__name__", type(function).__name__)
    documented = _read_docstring(inspect.getdoc(function) or "")
    hints, signature = typing.get_type_hints(function), inspect.signature(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidOption(
                f"the tool {name!r} takes {parameter}, and a model names every argument",
                hint="give each argument a name of its own",
            )
        if parameter.name not in hints:
            if parameter.name in ("self", "cls") and not properties:
                continue
            raise InvalidOption(
                f"the argument {parameter.name!r} of the tool {name!r} has no type",
                hint=f"write {parameter.name}: str, or another type that JSON has",
            )
        schema = _schema_of(hints[parameter.name], f"the argument {parameter.name!r} of the tool {name!r}")
        properties[parameter.name] = _described(schema, documented.arguments.get(parameter.name))
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    parameters = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    described = {"name": name, "description": documented.description, "parameters": parameters}
    if (returned := _returned(hints, documented)) is not None:
        described["return"] = returned
    return {"type": "function", "function": described}


def _returned(hints: dict[str, Any], documented: _Docstring) -> dict[str, Any] | None:
    if "return" not in hints:
        return None
    try:
        schema = _schema_of(hints["return"], "what is returned")
    except InvalidOption:
        return None  # no model writes it, so that its type need not be JSON's
    return {**schema, "description": documented.returns} if documented.returns is not None else schema


def _described(schema: dict[str, Any], description: str | None) -> dict[str, Any]:
    if description is None:
        return schema
    if choices := _CHOICES.search(description):
        schema = {**schema, "enum": json.loads(choices[1])}
        description = description[: choices.start()].strip()
    return {**schema, "description": description}


def _schema_of(hint: Any, what: str) -> dict[str, Any]:
    """The schema of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin in (typing.Union, types.UnionType):
        return _union_of(arguments, what)
    if origin is Literal:
        return _choice_of(list(arguments), what)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _choice_of([member.value for member in hint], what)
    if origin in _PLAIN and not arguments:
        return {"type": _PLAIN[origin]}
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0], what)}
    if origin is tuple and len(arguments) > 1 and ... not in arguments:
        return {"type": "array", "prefixItems": [_schema_of(argument, what) for argument in arguments]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], what)}
    raise InvalidOption(
        f"{what} has the type {hint!r}, which has no counterpart in JSON",
        hint="use str, int, float, bool, list, dict, Literal, an Enum or unions of these, or pass the schema itself",
    )


def _union_of(arguments: tuple[Any, ...], what: str) -> dict[str, Any]:
    schemas = [_schema_of(argument, what) for argument in arguments if argument is not type(None)]
    if len(schemas) == 1:
        schema = schemas[0]
    elif all(one.keys() == {"type"} and isinstance(one["type"], str) for one in schemas):
        names = sorted({one["type"] for one in schemas})
        schema = {"type": names[0] if len(names) == 1 else names}
    else:
        schema = {"anyOf": schemas}
    return {**schema, "nullable": True} if type(None) in arguments else schema


def _choice_of(values: list[Any], what: str) -> dict[str, Any]:
    kinds = list(dict.fromkeys(_PLAIN.get(type(value)) for value in values))
    if not values or not set(kinds) <= {"integer", "number", "string", "boolean", "null"}:
        raise InvalidOption(f"{what} is one of {values!r}, which JSON has not", hint="use texts, numbers and truths")
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


@dataclass(frozen=True, slots=True)
class _Docstring:
    description: str
    arguments: dict[str, str] = field(default_factory=dict)
    returns: str | None = None


def _read_docstring(text: str) -> _Docstring:
    """The sections of a docstring in Google's style; those after the ones that count here are left out."""
    sections: dict[str, list[str]] = {"": []}
    section = ""
    for line in text.strip().splitlines():
        if line.strip() in _SECTIONS:
            section = line.strip()
            sections[section] = []
        else:
            sections[section].append(line)
    returns = "\n".join(sections["Returns:"]).strip() if "Returns:" in sections else None
    return _Docstring("\n".join(sections[""]).strip(), _read_arguments(sections.get("Args:", [])), returns)


def _read_arguments(lines: list[str]) -> dict[str, str]:
    """The description of each argument; a line that stands deeper than the argument above it goes on with that."""
    arguments: dict[str, str] = {}
    name, indent = "", 0
    for line in filter(str.strip, lines):
        here = len(line) - len(line.lstrip())
        found = _ARGUMENT.fullmatch(line.strip())
        if found and (not name or here <= indent):
            name, indent = found[1], here
            arguments[name] = found[2].strip()
        elif name:
            arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return arguments
