"""The decorators of the module, `kw.on_message` and its sisters: those of the default app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kaiwa.apps.definition import default_app

F = TypeVar("F", bound=Callable[..., Any])


def _decorator(name: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        default_app().hooks.register(name, function)
        return function

    register.__name__ = register.__qualname__ = name
    register.__doc__ = f"Register a function at the hook {name} of the default app."
    return register


on_app_startup = _decorator("on_app_startup")
on_app_shutdown = _decorator("on_app_shutdown")
on_chat_start = _decorator("on_chat_start")
on_message = _decorator("on_message")
on_stop = _decorator("on_stop")
on_chat_end = _decorator("on_chat_end")
on_chat_resume = _decorator("on_chat_resume")
on_settings_update = _decorator("on_settings_update")
on_settings_edit = _decorator("on_settings_edit")
on_feedback = _decorator("on_feedback")
on_logout = _decorator("on_logout")
on_window_message = _decorator("on_window_message")
set_starters = _decorator("set_starters")
set_starter_categories = _decorator("set_starter_categories")
set_chat_profiles = _decorator("set_chat_profiles")
author_rename = _decorator("author_rename")
password_auth_callback = _decorator("password_auth_callback")
header_auth_callback = _decorator("header_auth_callback")
oauth_callback = _decorator("oauth_callback")
data_layer = _decorator("data_layer")


def action_callback(name: str) -> Callable[[F], F]:
    """Call the function when somebody presses a button of this name, in the default app."""
    return default_app().action_callback(name)
