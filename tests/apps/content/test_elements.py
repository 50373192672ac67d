from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester, ChatTester
from kaiwa.errors import InvalidOption


def shown(hook: Any) -> tuple[AppTester, ChatTester]:
    app = kw.App()
    app.on_message(hook)
    tester = AppTester(app)
    chat = tester.start()
    chat.say("show")
    return tester, chat


def content(tester: AppTester, chat: ChatTester, name: str) -> bytes:
    element = next(element for element in chat.elements if element.name == name)
    return tester.service.files.path(chat.id, element.id).read_bytes()


class Table:
    """As polars and pandas look from here."""

    columns = ("word", "count")

    def __init__(self, *, is_polars: bool) -> None:
        if is_polars:
            self.rows = lambda: [("会話", 1)]

    def itertuples(self, *, index: bool, name: None) -> list[tuple[str, int]]:
        return [("会話", 1)]


class Figure:
    """As plotly and matplotlib look from here."""

    def to_json(self) -> str:
        return '{"data": []}'

    def savefig(self, file: Any, **options: Any) -> None:
        file.write(b"PNG")


def test_every_kind(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")

    async def show() -> None:
        elements = [
            kw.Text("text", content="print()", language="python", display="side"),
            kw.Image("image", content=b"png", size="large"),
            kw.Pdf(path=tmp_path / "paper.pdf", page=3),
            kw.Audio("audio", url="https://example.org/a.ogg", auto_play=True),
            kw.Video("video", content=b"mp4", player_config={"loop": True}),
            kw.File("file.csv", content="a,b"),
            kw.Plotly(Figure(), "plotly"),
            kw.Pyplot(Figure(), "pyplot"),
            kw.Dataframe(Table(is_polars=True), "polars"),
            kw.Dataframe(Table(is_polars=False), "pandas"),
            kw.CustomElement("Custom", {"x": 1}),
        ]
        await kw.Message("look", elements=elements).send()

    tester, chat = shown(show)
    with tester:
        kinds = [(element.name, element.kind, element.mime) for element in chat.elements]
        assert kinds == [
            ("text", "text", "text/plain"),
            ("image", "image", "image/png"),
            ("paper.pdf", "pdf", "application/pdf"),
            ("audio", "audio", "audio/ogg"),
            ("video", "video", "video/mp4"),
            ("file.csv", "file", "text/csv"),
            ("plotly", "plotly", "application/json"),
            ("pyplot", "image", "image/png"),
            ("polars", "dataframe", "application/json"),
            ("pandas", "dataframe", "application/json"),
            ("Custom", "custom", ""),
        ]
        props = {element.name: element.props for element in chat.elements if element.props}
        assert props == {
            "paper.pdf": {"page": 3},
            "audio": {"auto_play": True},
            "video": {"player_config": {"loop": True}},
            "Custom": {"x": 1},
        }
        assert chat.elements[3].url == "https://example.org/a.ogg"
        assert chat.messages[-1].element_ids == tuple(element.id for element in chat.elements)
        assert content(tester, chat, "paper.pdf") == b"%PDF"
        for name in ("polars", "pandas"):
            assert json.loads(content(tester, chat, name)) == {"columns": ["word", "count"], "rows": [["会話", 1]]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: kw.Image("x"), "comes from one of url, path and content, not from none of them"),
        (lambda: kw.Image("x", url="https://a.b/c", content=b""), "not from url and content"),
        (lambda: kw.Image("x", url="file:///etc/passwd"), "begins with neither http:// nor https://"),
        (lambda: kw.Image("x", content=b"", page=3), "an element of kind image has no 'page'"),
    ],
)
def test_mistakes_are_told(make: Any, words: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        make()
    assert words in str(caught.value)


def test_elements_and_messages_go_and_the_sidebar_comes() -> None:
    async def show() -> None:
        text = kw.Text("gone", content="x")
        await kw.Message("look", elements=[text]).send()
        await text.remove()
        await kw.ElementSidebar.set_title("Notes")
        await kw.ElementSidebar.set_elements([kw.Text("note", content="y")], key="1")
        await kw.ElementSidebar.set_elements([kw.Text("unseen", content="z")], key="1")
        await kw.ElementSidebar.set_title("Better notes")

    tester, chat = shown(show)
    with tester:
        assert [element.name for element in chat.elements] == ["note"]
        assert chat.state.sidebar is not None
        assert (chat.state.sidebar.title, chat.state.sidebar.key) == ("Better notes", "1")


def test_the_task_list() -> None:
    async def show() -> None:
        tasks = kw.TaskList()
        first = kw.Task("Think", status=kw.TaskStatus.RUNNING)
        await tasks.add_task(first)
        await tasks.add_task(kw.Task("Speak"))
        await tasks.send()
        first.status = kw.TaskStatus.DONE
        tasks.status = "Half done"
        await tasks.update()

    tester, chat = shown(show)
    with tester:
        assert chat.state.task_list is not None
        assert chat.state.task_list.status == "Half done"
        tasks = [(task.title, task.state) for task in chat.state.task_list.tasks]
        assert tasks == [("Think", "done"), ("Speak", "ready")]


def test_buttons_toasts_commands_and_modes() -> None:
    app = kw.App()

    @app.on_message
    async def answer(message: kw.Message) -> None:
        await kw.context.emitter.set_commands([{"id": "search", "description": "Search", "button": True}])
        await kw.context.emitter.set_modes([kw.Mode("style", "Style", [kw.ModeOption("long", "Long", default=True)])])
        await kw.context.emitter.send_toast("nice", "success")
        buttons = [kw.Action("like", {"secret": 7}, label="I like it"), kw.Action("unknown")]
        await kw.Message(f"{message.command} {message.content}", actions=buttons).send()

    @app.action_callback("like")
    async def like(action: kw.Action) -> None:
        await kw.Message(f"{action.payload['secret']} {action.for_id is not None}").send()
        await action.remove()

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("cats", command="search")
        assert chat.last == "search cats"
        assert chat.toasts == ["nice"]
        assert (chat.state.commands[0].id, chat.state.commands[0].is_button) == ("search", True)
        assert chat.state.modes[0].options[0].is_default
        assert "secret" not in str(chat.frames)
        chat.click("I like it")
        assert chat.last == "7 True"
        assert [action.label for action in chat.state.actions.values()] == ["unknown"]
        with pytest.raises(kw.errors.Refused, match="the app does nothing when 'unknown' is pressed"):
            chat.click("unknown")
        with pytest.raises(kw.errors.Refused, match="has no action"):
            chat.send("press", action_id="made-up")


def test_mistakes_with_commands_and_toasts_are_told() -> None:
    async def answer() -> None:
        for command in ({"description": "x"}, {"id": "x", "butto": True}):
            try:
                await kw.context.emitter.set_commands([command])
            except InvalidOption as error:
                await kw.Message(f"{error} {error.hint}").send()
        await kw.context.emitter.send_toast("x", "eror")  # type: ignore[arg-type]

    tester, chat = shown(answer)
    with tester:
        assert "has no id" in chat.texts[1]
        assert "a command has no 'butto' did you mean 'button'?" in chat.texts[2]
        assert "there is no toast of type 'eror'" in chat.texts[3]
