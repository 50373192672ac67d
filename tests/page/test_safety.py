"""A page never runs what a model wrote, whatever it wrote."""

from __future__ import annotations

from collections.abc import Callable

from running import RunningApp
from visitor import Visitor


def test_a_hostile_answer(visit: Callable[..., Visitor], stage: RunningApp) -> None:
    visitor = visit(stage)
    addresses: list[str] = []
    visitor.page.on("request", lambda request: addresses.append(request.url))
    visitor.say("hostile")
    visitor.wait_for("The end.")
    visitor.wait_until_idle()
    visitor.page.wait_for_timeout(500)
    assert visitor.page.evaluate("window.hacked") is None
    assert visitor.page.locator("h1, .message").first.is_visible()
    inside = visitor.page.locator(".message.assistant")
    for tag in ("script", "img", "svg:not(.icon)", "iframe", "style", "object", "form"):
        assert inside.locator(tag).count() == 0, f"a <{tag}> of the model's"
    links = inside.locator("a").evaluate_all("links => links.map(link => link.href)")
    assert all(link.startswith(("https://", "http://", "mailto:")) for link in links), links
    assert not [address for address in addresses if "evil" in address]
    for link in inside.locator(".dead-link").all():
        link.click()
    assert visitor.page.evaluate("window.hacked") is None


def test_what_a_person_types_is_text_too(visitor: Visitor) -> None:
    visitor.say("<img src=x onerror=\"window.hacked='me'\">")
    visitor.wait_for("You said:")
    visitor.page.wait_for_timeout(200)
    assert visitor.page.evaluate("window.hacked") is None
    assert visitor.page.locator(".message img").count() == 0
