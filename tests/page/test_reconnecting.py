"""Connections break, pages are loaded again, servers end: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from running import APPS, RunningApp
from visitor import Visitor

WORDS = " ".join(f"w{number}" for number in range(60))


@pytest.fixture
def frail(tmp_path_factory: pytest.TempPathFactory, browser: object) -> Iterator[RunningApp]:
    """An app whose server ends during the test."""
    app = RunningApp(APPS / "stage.py", tmp_path_factory.mktemp("frail"))
    yield app
    app.stop()


def test_a_refresh_in_the_middle_of_an_answer(visitor: Visitor) -> None:
    visitor.say("slow")
    visitor.wait_for("w5")
    visitor.page.reload()
    visitor.wait_for("w8")
    visitor.wait_until_idle()
    assert visitor.answer.locator(".markdown").inner_text() == WORDS


def test_a_draft_is_there_after_a_refresh_and_in_its_own_chat(visitor: Visitor) -> None:
    visitor.field.fill("not sent")
    visitor.page.reload()
    assert visitor.field.input_value() == "not sent"
    visitor.say("first")
    visitor.wait_for("You said: first")
    assert visitor.field.input_value() == ""
    visitor.field.fill("for later")
    visitor.page.get_by_role("button", name="New chat").first.click()
    assert visitor.field.input_value() == ""
    visitor.page.go_back()
    visitor.wait_for("You said: first")
    assert visitor.field.input_value() == "for later"


def test_a_second_tab_follows(visitor: Visitor) -> None:
    visitor.say("endless")
    visitor.wait_for("w2")
    other = visitor.open(visitor.page.url)
    other.wait_for_selector(".message:has-text('w10')")
    assert other.locator(".round.stop").count() == 1
    other.click(".round.stop")
    visitor.page.wait_for_selector(".state:has-text('Stopped')")


def test_offline_and_back(visitor: Visitor) -> None:
    visitor.say("slow")
    visitor.wait_for("w5")
    visitor.context.set_offline(True)
    visitor.page.wait_for_selector(".notice:has-text('Reconnecting')")
    visitor.say("written offline")
    visitor.page.wait_for_selector(".message[data-state='unsent']:has-text('Will be sent')")
    visitor.page.wait_for_timeout(600)
    visitor.context.set_offline(False)
    visitor.wait_for("w59")
    visitor.wait_for("You said: written offline")
    assert visitor.page.locator(".message.assistant .markdown").first.inner_text() == WORDS
    assert visitor.page.locator(".message.user").count() == 2


def test_a_question_across_a_reconnect(visitor: Visitor) -> None:
    visitor.say("choose")
    visitor.page.wait_for_selector(".ask")
    visitor.page.reload()
    visitor.page.click("text=Yes, go on")
    visitor.wait_for("Chosen: yes")


def test_a_question_is_answered_in_the_composer(visitor: Visitor) -> None:
    visitor.say("ask")
    visitor.page.wait_for_selector("textarea[placeholder='Your answer']")
    visitor.say("Ada")
    visitor.wait_for("Hello, Ada!")


def test_a_server_that_is_killed_and_begun_again(visit: Callable[..., Visitor], frail: RunningApp) -> None:
    visitor = visit(frail)
    visitor.say("endless")
    visitor.wait_for("w20")
    frail.stop()
    visitor.page.wait_for_selector(".notice:has-text('Reconnecting')")
    visitor.say("after the crash")
    frail.start()
    visitor.wait_for("You said: after the crash")
    assert "w15" in visitor.page.locator(".message.assistant").first.inner_text()


def test_events_and_post_where_there_is_no_websocket(visit: Callable[..., Visitor], stage: RunningApp) -> None:
    visitor = visit(stage)
    visitor.context.add_init_script(
        "window.WebSocket = class { constructor() { setTimeout(() => this.onclose?.(), 0) } close() {} send() {} }"
    )
    visitor.page.reload()
    visitor.say("slow")
    visitor.wait_for("w59")
    assert visitor.answer.locator(".markdown").inner_text() == WORDS
