from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.content import widgets as w
from kaiwa.apps.testing import AppTester
from kaiwa.errors import InvalidOption, Refused


def all_widgets() -> list[w.InputWidget]:
    return [
        w.Switch("switch", "Switch", initial=True),
        w.Checkbox("checkbox", "Checkbox"),
        w.Slider("slider", "Slider", initial=1, min=0, max=2, step=0.5, tooltip="how much"),
        w.Select("select", "Select", items={"A": "a", "B": "b"}, initial_value="b"),
        w.RadioGroup("radio", "Radio", values=["x", "y"], initial_index=0),
        w.MultiSelect("multi", "Multi", values=["p", "q"], initial=["q"]),
        w.TextInput("text", "Text", initial="hi", multiline=True),
        w.NumberInput("number", "Number", initial=3),
        w.Tags("tags", "Tags", initial=["red"]),
        w.DatePicker("day", "Day", initial=date(2026, 11, 30)),
        w.DatePicker("days", "Days", mode="range", initial=["2026-11-30", "2026-12-01"]),
    ]


VALUES = {
    "switch": True,
    "checkbox": False,
    "slider": 1,
    "select": "b",
    "radio": "x",
    "multi": ["q"],
    "text": "hi",
    "number": 3,
    "tags": ["red"],
    "day": "2026-11-30",
    "days": ["2026-11-30", "2026-12-01"],
}


def app_with(widgets: list[Any]) -> kw.App:
    app = kw.App()

    @app.on_chat_start
    async def start() -> None:
        kw.user_session.set("first", await kw.ChatSettings(widgets).send())

    @app.on_settings_update
    async def update(settings: dict[str, Any]) -> None:
        await kw.Message(f"{settings['slider']} {kw.user_session.get('chat_settings')['slider']}").send()

    @app.on_settings_edit
    async def edit(settings: dict[str, Any]) -> None:
        await kw.Message(f"trying {settings['slider']}").send()

    @app.on_message
    async def answer() -> None:
        await kw.Message(str(kw.user_session.get("first"))).send()

    return app


def test_every_widget_and_its_value() -> None:
    with AppTester(app_with(all_widgets())) as tester:
        chat = tester.start()
        assert [widget.kind for widget in chat.state.tabs[0].widgets] == [
            "switch", "checkbox", "slider", "select", "radio", "multi_select", "text", "number", "tags", "date", "date",
        ]  # fmt: skip
        chat.say("?")
        assert chat.last == str(VALUES)


def test_changes_reach_the_app() -> None:
    with AppTester(app_with([w.Tab("t", "Tab", all_widgets())])) as tester:
        chat = tester.start()
        chat.set(slider=2, tags=["a", "b"])
        assert chat.last == "2 2"
        assert chat.state.settings["tags"] == ("a", "b")
        chat.send("change_settings", values={"slider": 0.5}, is_final=False)
        chat.wait(lambda: chat.last == "trying 0.5")
        assert chat.state.settings["slider"] == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"slider": 3}, "the setting 'slider' cannot be 3"),
        ({"slider": True}, "cannot be True"),
        ({"switch": 1}, "cannot be 1"),
        ({"select": "c"}, "cannot be 'c'"),
        ({"multi": ["p", "r"]}, "cannot be"),
        ({"text": ["x"]}, "cannot be"),
        ({"day": ["2026-11-30"]}, "cannot be"),
        ({"slidr": 1}, "this chat has no setting 'slidr'"),
    ],
)
def test_a_page_cannot_set_what_does_not_fit(values: dict[str, Any], words: str) -> None:
    with AppTester(app_with(all_widgets())) as tester:
        chat = tester.start()
        with pytest.raises(Refused, match=words):
            chat.send("change_settings", values=values)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: w.Switch("", "x"), "needs an id and a label"),
        (lambda: w.Slider("s", "S", initial=5, max=2), "begins at 5"),
        (lambda: w.Select("s", "S"), "needs either values or items"),
        (lambda: w.Select("s", "S", values=["a"], initial_index=1), "has 1 choices, and none at 1"),
        (lambda: w.Select("s", "S", values=["a"], initial_value="b"), "has no choice 'b'"),
        (lambda: w.DatePicker("d", "D", initial="30.11.2026"), "is no day"),
        (lambda: kw.ChatSettings([w.Switch("a", "A"), w.Switch("a", "B")]), "two widgets with the id 'a'"),
        (lambda: kw.ChatSettings([w.Switch("a", "A"), w.Tab("t", "T")]), "either widgets or tabs"),  # type: ignore[list-item]
    ],
)
def test_mistakes_are_told(make: Any, words: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        make()
    assert words in str(caught.value)


def test_a_chat_that_goes_on_keeps_what_was_set(tmp_path: Path) -> None:
    app = app_with([w.Slider("slider", "Slider", initial=1, min=0, max=2, step=0.5), w.TextInput("text", "Text")])
    with AppTester(app, folder=tmp_path) as tester:
        chat = tester.start()
        chat.say("begin")
        chat.set(slider=1.5, text="mine")
    with AppTester(app, folder=tmp_path) as tester:
        again = tester.open(chat.id)
        again.say("go on")
        assert again.state.settings == {"slider": 1.5, "text": "mine"}
