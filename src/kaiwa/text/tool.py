"""Tools that a model may call, and which of them it must: checked, from the words of the OpenAI API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kaiwa.errors import InvalidOption, did_you_mean

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_MODES = ("none", "auto", "required")
MAX_TOOLS = 128


@dataclass(frozen=True, slots=True)
class Tool:
    """A function by its name, with the JSON schema of the object of its arguments."""

    name: str
    parameters: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schema of each argument."""
        found = self.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> frozenset[str]:
        """The names of the arguments that may not be left out."""
        return frozenset(self.parameters.get("required") or ())


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may call a tool ("auto"), must ("required") or must not ("none"); `name` is the one it must."""

    mode: Literal["none", "auto", "required"] = "auto"
    name: str = ""


def read_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[Tool, ...]:
    """The tools of `[{"type": "function", "function": {"name": …, "parameters": …}}, …]`.

    Raises `InvalidOption` with the index of the first that is wrong.
    """
    if tools is None:
        return ()
    if isinstance(tools, (str, Mapping)) or not isinstance(tools, Sequence):
        raise InvalidOption(f"tools={tools!r} is impossible", hint="tools must be a list")
    if len(tools) > MAX_TOOLS:
        raise InvalidOption(f"there are {len(tools):,} tools, more than {MAX_TOOLS}", hint="offer fewer at once")
    read: dict[str, Tool] = {}
    for index, described in enumerate(tools):
        tool = _read_tool(index, described)
        if tool.name in read:
            raise InvalidOption(f"tool {index} has the name {tool.name!r}, as one before it has")
        read[tool.name] = tool
    return tuple(read.values())


def read_choice(choice: object, tools: Sequence[Tool]) -> ToolChoice:
    """What `tool_choice` asks for: "none", "auto", "required", or `{"type": "function", "function": {"name": …}}`.

    Raises `InvalidOption` for anything else, for a name that is no tool's, and where a call is required without tools.
    """
    if isinstance(choice, str) and choice in _MODES:
        if choice == "required" and not tools:
            raise InvalidOption("tool_choice='required' needs tools", hint="pass at least one tool")
        return ToolChoice(choice)  # type: ignore[arg-type]  # it is one of the three
    function = choice.get("function") if isinstance(choice, Mapping) and choice.get("type") == "function" else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise InvalidOption(
            f"tool_choice={choice!r} is impossible",
            hint='it is "none", "auto", "required", or {"type": "function", "function": {"name": "…"}}',
        )
    names = [tool.name for tool in tools]
    if name not in names:
        raise InvalidOption(
            f"tool_choice names {name!r}, which is no tool",
            hint=did_you_mean(name, names) if names else "pass tools as well",
        )
    return ToolChoice("required", name)


def _read_tool(index: int, described: object) -> Tool:
    if not isinstance(described, Mapping) or described.get("type", "function") != "function":
        kind = described.get("type") if isinstance(described, Mapping) else type(described).__name__
        raise InvalidOption(
            f"tool {index} is of type {kind!r}, and a model calls functions only",
            hint='a tool is {"type": "function", "function": {"name": "…", "parameters": {…}}}',
        )
    function = described.get("function", described)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption(
            f"tool {index} has the name {name!r}", hint="a name has 1 to 64 letters of A-Z a-z 0-9 _ . and -"
        )
    parameters = function.get("parameters")
    parameters = _NO_PARAMETERS if parameters is None else parameters
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise InvalidOption(
            f"tool {name!r} has the parameters {parameters!r}", hint="parameters are the JSON schema of an object"
        )
    return Tool(name, parameters)
