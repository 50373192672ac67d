"""What is sent is drawn at once, however much it is."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable

import pytest

from kaiwa.apps.gateway.page_files import FOLDER
from running import RunningApp
from visitor import Visitor

MAX_BEHIND_S = 1.0
MAX_PAGE_BYTES = 250_000
PASTE = """
(field, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
}
"""


@pytest.mark.parametrize("kind", ["prose", "code"])
def test_2000_tokens_flat_out(visit: Callable[..., Visitor], stage: RunningApp, kind: str) -> None:
    # The best of three: what other programs take from this machine says nothing of the page.
    behind_s = []
    while len(behind_s) < 3 and min(behind_s, default=MAX_BEHIND_S) >= MAX_BEHIND_S:
        behind_s.append(seconds_behind(visit(stage), kind))
    assert min(behind_s) < MAX_BEHIND_S, behind_s


def seconds_behind(visitor: Visitor, kind: str) -> float:
    """How long after the app has said its last token, the page has drawn everything."""
    started = time.perf_counter()
    visitor.say(f"flood {kind}")
    visitor.wait_for("server took")
    drawn_s = time.perf_counter() - started
    took = re.search(r"server took ([\d.]+) s", visitor.answer.inner_text())
    assert took is not None
    last = "Word 1999" if kind == "prose" else "value_1997"
    assert last in visitor.page.locator(".message.assistant").first.inner_text()
    return drawn_s - float(took[1])


def test_a_message_of_two_megabytes(visitor: Visitor) -> None:
    text = "きょうは large. " * 180_000
    assert len(text) > 2_000_000
    visitor.field.evaluate(PASTE, text)
    visitor.page.wait_for_selector(".long-text:has-text('2,160,000')")
    visitor.field.press("Enter")
    visitor.page.wait_for_selector(".message.assistant")
    assert visitor.page.locator(".message.user .plain").evaluate("node => node.textContent.length") == len(text)
    visitor.say("still quick")
    visitor.page.wait_for_selector(".message.assistant >> nth=1")


def test_an_answer_of_two_megabytes(visitor: Visitor) -> None:
    visitor.say("large")
    visitor.page.wait_for_selector(".message.assistant")
    assert visitor.answer.evaluate("node => node.textContent.length") > 2_000_000
    visitor.say("still quick")
    visitor.page.wait_for_selector(".message.assistant >> nth=1")


def test_the_page_is_small() -> None:
    """What a browser fetches before the first answer: everything that index.html names."""
    index = (FOLDER / "index.html").read_text(encoding="utf-8")
    names = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index)
    assert len(names) >= 2
    size = sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in names)
    assert size < MAX_PAGE_BYTES


def test_a_thousand_messages(visitor: Visitor) -> None:
    visitor.say("many")
    visitor.wait_for("Message 999 of many")
    visitor.page.reload()
    visitor.wait_for("Message 999 of many")
    assert visitor.page.locator(".message").count() < 100, "only the end is drawn at first"
    visitor.page.mouse.move(700, 300)
    while not visitor.page.locator(".message:has-text('many') >> nth=0").inner_text().startswith("many"):
        visitor.page.mouse.wheel(0, -20_000)
        visitor.page.wait_for_timeout(30)
    assert visitor.page.locator(".message").count() == 1001
