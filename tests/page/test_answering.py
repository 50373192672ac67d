"""While an answer is under way: stop, write ahead, read further up, and steps."""

from __future__ import annotations

from visitor import Visitor

PIXELS_BELOW = """
() => { const box = document.querySelector('.scroller'); return box.scrollHeight - box.scrollTop - box.clientHeight }
"""


def test_stop_stops(visitor: Visitor) -> None:
    visitor.say("endless")
    visitor.wait_for("w5")
    visitor.page.click(".round.stop")
    visitor.page.wait_for_selector(".state:has-text('Stopped')")
    text = visitor.answer.inner_text()
    visitor.page.wait_for_timeout(300)
    assert visitor.answer.inner_text() == text


def test_a_message_written_ahead_waits_in_view(visitor: Visitor) -> None:
    visitor.say("endless")
    visitor.wait_for("w3")
    visitor.say("and then?")
    visitor.page.wait_for_selector(".message.user[data-state='queued']:has-text('and then?')")
    visitor.say("forget this")
    waiting = visitor.page.locator(".message.user[data-state='queued']:has-text('forget this')")
    waiting.locator("text=Take back").click()
    waiting.wait_for(state="detached")
    visitor.page.click(".round.stop")
    visitor.wait_for("You said: and then?")
    said = visitor.page.locator(".message").all_inner_texts()
    assert [text.split()[0] for text in said] == ["endless", "w0", "and", "You"]


def test_the_view_follows_until_the_reader_goes_up(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 500})
    visitor.say("rich")
    visitor.wait_until_idle()
    visitor.say("endless")
    visitor.wait_for("w5")
    assert visitor.page.evaluate(PIXELS_BELOW) < 5
    visitor.page.mouse.move(700, 200)
    visitor.page.mouse.wheel(0, -600)
    visitor.page.wait_for_selector(".to-end")
    top = visitor.page.evaluate("document.querySelector('.scroller').scrollTop")
    visitor.page.wait_for_timeout(400)
    assert visitor.page.evaluate("document.querySelector('.scroller').scrollTop") == top
    visitor.page.click(".to-end")
    visitor.page.wait_for_timeout(200)
    assert visitor.page.evaluate(PIXELS_BELOW) < 5
    visitor.page.click(".round.stop")


def test_steps_are_a_tree_with_states_and_times(visitor: Visitor) -> None:
    visitor.say("steps")
    visitor.page.wait_for_selector(".step[data-state='in_use'] progress")
    visitor.wait_for("Done.")
    outer = visitor.page.locator(".step[data-depth='0']")
    assert outer.get_attribute("data-state") == "used"
    inner = outer.locator(".step[data-depth='1']")
    assert inner.count() == 2
    assert inner.nth(1).get_attribute("data-state") == "failed"
    inner.nth(0).locator(".step-line").click()
    inner.nth(0).locator(".step-body .hl-attr").first.wait_for()
    assert "pages found" in inner.nth(0).inner_text()
    assert " s" in inner.nth(0).locator(".elapsed").inner_text()


def test_an_error_is_told(visitor: Visitor) -> None:
    visitor.say("error")
    visitor.page.wait_for_selector(".message.error")
    told = visitor.page.locator(".message.error").get_attribute("data-id")
    visitor.page.get_by_role("button", name="Answer again").click()
    visitor.page.wait_for_selector(f"[data-id='{told}']", state="detached")
    visitor.page.wait_for_selector(".message.error")


def test_edit_and_answer_again(visitor: Visitor) -> None:
    visitor.say("first")
    visitor.wait_for("You said: first")
    visitor.page.locator(".message.user").hover()
    visitor.page.click("[aria-label='Edit']")
    field = visitor.page.locator(".edit-field textarea")
    field.fill("second")
    field.press("Enter")
    visitor.wait_for("You said: second")
    assert visitor.page.locator("text=You said: first").count() == 0
    before = visitor.answer.get_attribute("data-id")
    visitor.page.click("[aria-label='Answer again']")
    visitor.page.wait_for_selector(f".message.assistant:not([data-id='{before}']) >> text=You said: second")
    assert visitor.page.locator(".message.assistant").count() == 1
