"""Hooks: where an app's functions are called. Each is a row of a table, and checked when it is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import InvalidHook, did_you_mean

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Hook:
    """A row of the table.

    A function may take only the first of the `parameters`, but not fewer than `num_needed`. A hook that `is_named` may
    have one function for each name.
    """

    name: str
    parameters: tuple[str, ...]
    help: str
    num_needed: int = 0
    is_named: bool = False


HOOKS: tuple[Hook, ...] = (
    Hook("on_app_startup", (), "the app begins to be served"),
    Hook("on_app_shutdown", (), "the app is served no longer"),
    Hook("on_chat_start", (), "a chat begins"),
    Hook("on_message", ("message",), "a person said something"),
    Hook("on_stop", (), "a person stopped the run"),
    Hook("on_chat_end", (), "a chat is over: deleted, ended, or left alone for long; never a lost connection"),
    Hook("on_chat_resume", ("thread",), "a chat that was over goes on", 1),
    Hook("on_settings_update", ("settings",), "a person has changed the chat's settings", 1),
    Hook("on_settings_edit", ("settings",), "a person is trying other settings out", 1),
    Hook("on_feedback", ("feedback",), "a person said what they think of a message", 1),
    Hook("on_logout", ("request", "response"), "a person logged out"),
    Hook("on_window_message", ("data",), "the page around this one said something", 1),
    Hook("action_callback", ("action",), "a person pressed a button", is_named=True),
    Hook("set_starters", ("user", "language"), "which first messages to offer"),
    Hook("set_starter_categories", ("user", "language", "chat_profile"), "the same, under headings"),
    Hook("set_chat_profiles", ("user", "language"), "which kinds of chat there are"),
    Hook("author_rename", ("author",), "how an author is called", 1),
    Hook("password_auth_callback", ("username", "password"), "who has this name and password", 2),
    Hook("header_auth_callback", ("headers",), "who sends these headers", 1),
    Hook(
        "oauth_callback",
        ("provider_id", "token", "raw_user_data", "default_user", "id_token"),
        "who comes from an OAuth provider",
        4,
    ),
    Hook("data_layer", (), "what else is told of chats"),
)

BY_NAME = {hook.name: hook for hook in HOOKS}


class Hooks:
    """The functions of one app."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], Function] = {}

    def __bool__(self) -> bool:
        return bool(self._functions)

    def register(self, hook_name: str, function: Function, *, name: str = "") -> None:
        """Call `function` at this hook; `name` is the action's for a hook that has one for each name.

        Raises `InvalidHook` where there is no such hook, it is taken, or the function's parameters don't fit.
        """
        hook = BY_NAME.get(hook_name)
        if hook is None:
            raise InvalidHook(f"there is no hook {hook_name!r}", hint=did_you_mean(hook_name, BY_NAME))
        if not callable(function):
            raise InvalidHook(
                f"{_written(hook, name)} is put above a function, not above {function!r}",
                hint=f"write `@{_written(hook, name)}` on the line before `def`",
            )
        taken = self._functions.get((hook_name, name))
        if taken is not None:
            raise InvalidHook(
                f"{_written(hook, name)} is registered twice: for {_place(taken)} and for {_place(function)}",
                hint="make one function of the two",
            )
        self._check_parameters(hook, function, name)
        self._functions[hook_name, name] = function

    def find(self, hook_name: str, name: str = "") -> Function | None:
        """The function of a hook, where the app has one."""
        return self._functions.get((hook_name, name))

    def names_of(self, hook_name: str) -> list[str]:
        """The names for which a hook has a function."""
        return [name for hook, name in self._functions if hook == hook_name]

    def has(self, *hook_names: str) -> bool:
        """Whether the app has a function for one of these hooks."""
        return any(hook in hook_names for hook, _ in self._functions)

    def _check_parameters(self, hook: Hook, function: Function, name: str) -> None:
        if num_arguments(hook, function) is None:
            takes = f"({', '.join(hook.parameters)})"
            if hook.parameters and hook.num_needed < len(hook.parameters):
                takes += " or fewer of these from the left" if len(hook.parameters) > 1 else " or ()"
            raise InvalidHook(
                f"{_written(hook, name)} calls its function with {takes}, and {_place(function)} takes "
                f"{_bare(inspect.signature(function))}",
                hint=f"write def {getattr(function, '__name__', 'function')}({', '.join(hook.parameters)})",
            )


def num_arguments(hook: Hook, function: Function) -> int | None:
    """How many of the hook's arguments the function takes; None where it can take none of the possible numbers."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return len(hook.parameters)  # made in C, and keeps its parameters to itself
    for number in range(len(hook.parameters), hook.num_needed - 1, -1):
        try:
            signature.bind(*hook.parameters[:number])
        except TypeError:
            continue
        return number
    return None


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """Without types, which are not what is wrong."""
    empty = inspect.Parameter.empty
    return signature.replace(
        parameters=[one.replace(annotation=empty) for one in signature.parameters.values()], return_annotation=empty
    )


def _written(hook: Hook, name: str) -> str:
    return f"{hook.name}({name!r})" if hook.is_named else hook.name


def _place(function: Function) -> str:
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{getattr(function, '__name__', repr(function))}{where}"
