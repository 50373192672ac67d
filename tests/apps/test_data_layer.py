from __future__ import annotations

from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def create_step(self, step: dict[str, Any]) -> None:
        self.calls.append(("create", step["type"], step["output"]))

    def update_step(self, step: dict[str, Any]) -> None:
        self.calls.append(("update", step["type"], step["output"]))

    async def upsert_feedback(self, feedback: kw.Feedback) -> None:
        raise ValueError("full")

    async def delete_thread(self, thread_id: str) -> None:
        self.calls.append(("delete", thread_id))


def test_a_data_layer_is_told_in_order_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    app, recorder = kw.App(), Recorder()
    app.data_layer(lambda: recorder)

    @app.on_message
    async def answer() -> None:
        with kw.Step("Look", type="tool") as step:
            step.output = "found"
        said = kw.Message()
        await said.stream_token("a")
        await said.stream_token("b")
        await said.send()

    with AppTester(app) as tester:
        chat = tester.start()
        last = chat.say("hi")
        chat.send("rate", message_id=last.id, value=1)
        chat.wait(lambda: "the data layer's upsert_feedback failed" in caplog.text)  # else only the end might be told
        chat.send("delete_chat")
        chat.wait(lambda: ("delete", chat.id) in recorder.calls)
    assert recorder.calls == [
        ("create", "user_message", "hi"),
        ("create", "tool", ""),
        ("update", "tool", "found"),
        ("create", "assistant_message", "ab"),
        ("delete", chat.id),
    ]
