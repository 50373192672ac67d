"""Enter that ends a conversion belongs to the input method, in the three orders in which browsers tell it."""

from __future__ import annotations

import pytest

from visitor import Visitor

COMPOSE = """
(field, order) => {
  const key = (keyCode, isComposing) => field.dispatchEvent(new KeyboardEvent('keydown', {
    key: 'Enter', code: 'Enter', keyCode, which: keyCode, isComposing, bubbles: true, cancelable: true }));
  const start = () => field.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
  const end = () => field.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true, data: '日本' }));
  start();
  if (order === 'chrome') { key(229, true); end(); }
  if (order === 'safari') { end(); key(229, false); }
  if (order === 'same moment') { end(); key(13, false); }
}
"""


@pytest.mark.parametrize("order", ["chrome", "safari", "same moment"])
def test_the_composer_does_not_send(visitor: Visitor, order: str) -> None:
    visitor.field.fill("日本")
    visitor.field.evaluate(COMPOSE, order)
    visitor.page.wait_for_timeout(120)
    assert visitor.field.input_value() == "日本"
    assert visitor.page.locator(".message").count() == 0
    visitor.field.press("Enter")
    visitor.wait_for("You said: 日本")


@pytest.mark.parametrize("order", ["chrome", "safari", "same moment"])
def test_nor_does_renaming_a_chat(visitor: Visitor, order: str) -> None:
    visitor.say("hello")
    visitor.wait_for("You said: hello")
    row = visitor.page.locator(".chat-row[aria-current]")
    row.hover()
    row.locator("[aria-label='Rename']").click()
    field = visitor.page.locator(".chat-row .line-field")
    field.fill("名前")
    field.evaluate(COMPOSE, order)
    visitor.page.wait_for_timeout(120)
    assert field.count() == 1
    field.press("Enter")
    visitor.page.wait_for_selector(".chat-row:has-text('名前')")


def test_shift_enter_is_a_new_line(visitor: Visitor) -> None:
    visitor.field.fill("one")
    visitor.field.press("Shift+Enter")
    visitor.field.type("two")
    assert visitor.field.input_value() == "one\ntwo"
