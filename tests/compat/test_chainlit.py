from __future__ import annotations

import pytest

import kaiwa
import kaiwa.compat.chainlit as cl
from kaiwa.apps.testing import AppTester
from kaiwa.compat.chainlit import MISSING
from kaiwa.compat.chainlit.input_widget import Slider

# What chainlit 2.12 offers to apps at its top, but for what is in MISSING.
NAMES = [
    "Action",
    "AskActionMessage",
    "AskElementMessage",
    "AskFileMessage",
    "AskUserMessage",
    "Audio",
    "ChatProfile",
    "ChatSettings",
    "CopilotFunction",
    "CustomElement",
    "Dataframe",
    "ElementSidebar",
    "ErrorMessage",
    "File",
    "Image",
    "Message",
    "Mode",
    "ModeOption",
    "Pdf",
    "Plotly",
    "Pyplot",
    "Starter",
    "StarterCategory",
    "Step",
    "Task",
    "TaskList",
    "TaskStatus",
    "Text",
    "User",
    "Video",
    "action_callback",
    "author_rename",
    "cache",
    "chat_context",
    "context",
    "data_layer",
    "header_auth_callback",
    "input_widget",
    "make_async",
    "oauth_callback",
    "on_app_shutdown",
    "on_app_startup",
    "on_chat_end",
    "on_chat_resume",
    "on_chat_start",
    "on_feedback",
    "on_logout",
    "on_message",
    "on_settings_edit",
    "on_settings_update",
    "on_stop",
    "on_window_message",
    "password_auth_callback",
    "run_sync",
    "send_window_message",
    "set_chat_profiles",
    "set_starter_categories",
    "set_starters",
    "sleep",
    "step",
    "types",
    "user_session",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_names_are_there(name: str) -> None:
    assert getattr(cl, name) is not None
    assert name in dir(cl)


def test_they_are_kaiwas_own() -> None:
    assert cl.Message is kaiwa.Message
    assert cl.input_widget.Slider is Slider


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_says_what_to_do(name: str) -> None:
    with pytest.raises(AttributeError, match=f"Kaiwa has no {name}"):
        getattr(cl, name)


def test_an_app_of_theirs_moves_over() -> None:
    app = kaiwa.App()

    @app.on_chat_start
    async def start() -> None:
        settings = await cl.ChatSettings([cl.input_widget.Slider(id="t", label="T", initial=1, min=0, max=2)]).send()
        cl.user_session.set("t", settings["t"])

    @app.on_message
    async def main(message: cl.Message) -> None:  # type: ignore[name-defined]
        async with cl.Step(name="Tool", type="tool") as step:
            step.output = "done"
        await cl.Message(content=f"{message.content} {cl.user_session.get('t')}").send()

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("hi")
        assert chat.last == "hi 1"
