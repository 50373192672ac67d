"""The first minutes: a greeting, a question, an answer."""

from __future__ import annotations

import re
from collections.abc import Callable

from running import RunningApp
from visitor import Visitor


def test_a_greeting_and_something_to_begin_with(visitor: Visitor) -> None:
    assert "What would you like to talk about?" in visitor.page.inner_text("h1")
    visitor.page.click("text=Explain something")
    visitor.wait_for("A heat pump does not make warmth")


def test_the_page_speaks_japanese(visit: Callable[..., Visitor], stage: RunningApp) -> None:
    visitor = visit(stage, language="ja-JP")
    assert "何についてお話ししましょうか" in visitor.page.inner_text("h1")
    visitor.say("steps")
    visitor.page.wait_for_selector(".step-state:has-text('使用中')")
    visitor.wait_for("Done.")
    assert "使用済み" in visitor.page.inner_text(".step-line >> nth=0")


def test_an_answer_streams_and_becomes_elements(visitor: Visitor) -> None:
    visitor.say("rich")
    visitor.wait_until_idle()
    answer = visitor.answer
    answer.locator(".katex").first.wait_for()
    answer.locator(".hl-keyword").first.wait_for()
    assert answer.locator("table").count() == 1
    assert answer.locator("ol li").count() == 4
    assert "$0.62" in answer.inner_text(), "money is no formula"
    assert answer.locator("a").get_attribute("rel") == "noopener noreferrer nofollow"


def test_the_address_names_the_chat(visitor: Visitor) -> None:
    visitor.say("hello")
    visitor.wait_for("You said: hello")
    assert re.search(r"/chat/[\w-]+$", visitor.page.url)
    visitor.page.wait_for_selector(".chat-row[aria-current]")


def test_nothing_comes_from_elsewhere(visit: Callable[..., Visitor], stage: RunningApp) -> None:
    visitor = visit(stage)
    addresses: list[str] = []
    visitor.page.on("request", lambda request: addresses.append(request.url))
    visitor.page.reload()
    visitor.say("rich")
    visitor.wait_until_idle()
    visitor.answer.locator(".katex").first.wait_for()
    assert len(addresses) > 3
    assert all(address.startswith(stage.url) for address in addresses)


def test_a_phone_gets_no_keyboard_before_it_is_wanted(visit: Callable[..., Visitor], stage: RunningApp) -> None:
    visitor = visit(stage, is_phone=True)
    assert visitor.page.evaluate("document.activeElement.tagName") == "BODY"
    assert not visitor.page.locator(".rail").is_visible()
    visitor.page.click("[aria-label='Show chats']")
    visitor.page.wait_for_selector(".rail .new-chat")
    width = visitor.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "nothing sticks out to the side"
