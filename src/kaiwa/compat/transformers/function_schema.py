"""A Python function as a tool: its JSON schema, out of its type hints and its docstring.

The form is what transformers makes of a function, and what chat templates were written for: a description, and an
`Args:` section in Google's style with a line for each argument, which may end in `(choices: ["a", "b"])`.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kaiwa.errors import InvalidOption

_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_SECTION = re.compile(r"^\s*(Args|Arguments|Returns|Raises|Example|Examples|Yields|Note|Notes):\s*$", re.MULTILINE)
_ARGUMENT = re.compile(r"^(?P<name>\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<words>.*)$", re.DOTALL)
_CHOICES = re.compile(r"\(choices:\s*(?P<choices>\[.*\])\s*\)\s*$", re.IGNORECASE | re.DOTALL)
_IGNORED = ("self", "return")


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The tool that a function is: `{"type": "function", "function": {"name": …, "parameters": …}}`.

    Raises `InvalidOption` where an argument has no type hint, or the docstring does not describe it.
    """
    name = getattr(function, "__name__", type(function).__name__)
    description, arguments, returns = _read_docstring(function, name)
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in _IGNORED:
            continue
        if parameter.name not in hints:
            raise InvalidOption(
                f"the argument {parameter.name!r} of the tool {name} has no type hint", hint=f"{parameter.name}: str"
            )
        if parameter.name not in arguments:
            raise InvalidOption(
                f"the docstring of the tool {name} does not describe its argument {parameter.name!r}",
                hint=f"write a line below Args: `{parameter.name}: what it is`",
            )
        properties[parameter.name] = _described(_type(hints[parameter.name], name), arguments[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    tool = {"name": name, "description": description, "parameters": parameters}
    if "return" in hints:
        tool["return"] = _type(hints["return"], name) | ({} if returns is None else {"description": returns})
    return {"type": "function", "function": tool}


def _read_docstring(function: Callable[..., Any], name: str) -> tuple[str, dict[str, str], str | None]:
    """The description, what each argument is, and what is returned."""
    text = inspect.getdoc(function)
    if not text:
        raise InvalidOption(
            f"the tool {name} has no docstring, from which a model could know what it does",
            hint="write one, with an Args: section",
        )
    pieces = _SECTION.split(text)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    returns = sections.get("Returns")
    arguments = _arguments(sections.get("Args") or sections.get("Arguments") or "")
    return pieces[0].strip(), arguments, None if returns is None else _joined(returns)


def _arguments(section: str) -> dict[str, str]:
    """The lines of an `Args:` section; a line that is further in goes on with the one before."""
    lines = [line for line in section.splitlines() if line.strip()]
    if not lines:
        return {}
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    blocks: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) == margin or not blocks:
            blocks.append(line.strip())
        else:
            blocks[-1] += " " + line.strip()
    found = [match for block in blocks if (match := _ARGUMENT.match(block))]
    return {match["name"].lstrip("*"): match["words"].strip() for match in found}


def _joined(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def _described(schema: dict[str, Any], words: str) -> dict[str, Any]:
    if choices := _CHOICES.search(words):
        schema = {**schema, "enum": [str(choice).strip() for choice in json.loads(choices["choices"])]}
        words = words[: choices.start()].strip()
    return {**schema, "description": words}


def _type(hint: Any, tool: str) -> dict[str, Any]:
    """The JSON schema of a type."""
    if hint is Any:
        return {}
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(inner, tool)
    if hint is list or origin is list:
        return {"type": "array", **({"items": _type(inner[0], tool)} if inner else {})}
    if hint is dict or origin is dict:
        return {"type": "object", **({"additionalProperties": _type(inner[1], tool)} if len(inner) > 1 else {})}
    if origin is tuple and inner and Ellipsis not in inner:
        return {"type": "array", "prefixItems": [_type(each, tool) for each in inner]}
    if origin is Literal:
        kinds = list(dict.fromkeys(_NAMES.get(type(choice), "") for choice in inner))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(inner)}
    raise InvalidOption(
        f"the tool {tool} has the type {hint!r}, for which there is no JSON",
        hint="use int, float, str, bool, list, dict, tuple, Literal, or a union of them",
    )


def _union(inner: tuple[Any, ...], tool: str) -> dict[str, Any]:
    kinds = [_type(each, tool) for each in inner if each is not type(None)]
    if len(kinds) == 1:
        schema = kinds[0]
    elif all(set(kind) == {"type"} and isinstance(kind["type"], str) for kind in kinds):
        schema = {"type": sorted(kind["type"] for kind in kinds)}
    else:
        schema = {"anyOf": kinds}
    return {**schema, "nullable": True} if type(None) in inner else schema
