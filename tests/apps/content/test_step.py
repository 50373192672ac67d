from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.apps.testing import AppTester, ChatTester
from kaiwa.errors import InvalidOption


def run(hook: Any) -> tuple[AppTester, ChatTester]:
    app = kw.App("Worker")
    app.on_message(hook)
    tester = AppTester(app)
    chat = tester.start()
    chat.say("go")
    return tester, chat


def test_a_step_is_in_use_and_then_used() -> None:
    async def work() -> None:
        with kw.Step("Load", type="llm") as step:
            step.progress(1, 4, stage="load", unit="bytes")
            step.output = "ready"

    tester, chat = run(work)
    with tester:
        (step,) = chat.steps
        assert (step.name, step.type, step.state, step.output) == ("Load", "llm", "used", "ready")
        assert step.progress is not None
        assert step.progress.done == 1
        assert step.ended_at is not None
        assert step.ended_at >= step.started_at
        states = [event["step"]["state"] for event in _events(chat) if event["type"] in ("step_added", "step_updated")]
        assert states == ["in_use", "used"]


def test_steps_inside_others_also_in_threads_and_tasks() -> None:
    def inner(name: str) -> None:
        with kw.Step(name):
            pass

    async def aside() -> None:
        async with kw.Step("task"):
            pass

    async def work() -> None:
        async with kw.Step("outer"):
            inner("here")
            await asyncio.to_thread(inner, "thread")
            await asyncio.gather(aside(), aside())
        inner("after")

    tester, chat = run(work)
    with tester:
        outer = chat.steps[0]
        parents = [(step.name, step.parent_id == outer.id) for step in chat.steps[1:]]
        assert parents == [("here", True), ("thread", True), ("task", True), ("task", True), ("after", False)]


def test_an_error_makes_a_step_failed_and_goes_on() -> None:
    async def work() -> None:
        with kw.Step("Divide"):
            _ = 1 / 0

    tester, chat = run(work)
    with tester:
        assert (chat.steps[0].state, chat.steps[0].output) == ("failed", "ZeroDivisionError: division by zero")
        assert chat.outcomes == ["failed"]


def test_a_stop_stops_the_step() -> None:
    app = kw.App()

    @app.on_message
    async def wait() -> None:
        async with kw.Step("Wait"):
            await asyncio.sleep(60)

    with AppTester(app) as tester:
        chat = tester.start()
        chat.say("go", wait=False)
        chat.wait(lambda: chat.steps)
        chat.stop()
        assert chat.steps[0].state == "stopped"


def test_a_function_as_a_step() -> None:
    @kw.step(type="tool")
    async def add(x: int, y: int = 2) -> dict[str, int]:
        return {"sum": x + y}

    @kw.step
    def shout(text: str) -> str:
        return text.upper()

    async def work() -> None:
        assert await add(1) == {"sum": 3}
        assert shout("hey") == "HEY"

    tester, chat = run(work)
    with tester:
        first, second = chat.steps
        assert (first.name, first.type, json.loads(first.input)) == ("add", "tool", {"x": 1})
        assert (json.loads(first.output), first.output_language) == ({"sum": 3}, "json")
        assert (second.name, second.output, second.output_language) == ("shout", "HEY", None)
        assert add.__name__ == "add"


def test_the_output_of_a_step_streams() -> None:
    async def work() -> None:
        async with kw.Step("Write", show_input="python") as step:
            await step.stream_token("print(", is_input=True)
            await step.stream_token(")", is_input=True)
            for letter in "done":
                await step.stream_token(letter)

    tester, chat = run(work)
    with tester:
        step = chat.steps[0]
        assert (step.input, step.input_language, step.output) == ("print()", "python", "done")


def test_a_step_by_hand_and_what_is_attached_to_it() -> None:
    async def work() -> None:
        step = kw.Step("By hand", elements=[kw.Text("notes", content="x")])
        await step.send()
        step.output = "so"
        await step.update()
        gone = await kw.Step("Gone").send()
        await gone.remove()

    tester, chat = run(work)
    with tester:
        assert [(step.name, step.state, step.output) for step in chat.steps] == [("By hand", "used", "so")]
        assert chat.elements[0].for_id == chat.steps[0].id


def test_mistakes_are_told() -> None:
    with pytest.raises(InvalidOption, match="no step of type 'tol'"):
        kw.Step("x", type="tol")  # type: ignore[arg-type]


def test_a_step_that_was_not_begun_says_so_but_begins_with_its_first_token() -> None:
    async def work() -> None:
        await kw.Step("Streams").stream_token("x")
        await kw.Step("Early").update()

    tester, chat = run(work)
    with tester:
        assert [step.output for step in chat.steps] == ["x"]
        assert "the step 'Early' was not begun" in chat.last


def _events(chat: ChatTester) -> list[dict[str, Any]]:
    return [event.model_dump() for frame in chat.frames if frame.type == "events" for event in frame.events]
