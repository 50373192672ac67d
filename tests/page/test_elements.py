"""What an app shows beside its words, and what people can press."""

from __future__ import annotations

from visitor import Visitor


def test_elements_and_actions(visitor: Visitor) -> None:
    visitor.say("elements")
    table = visitor.page.locator("[data-kind='dataframe']")
    table.locator("td").first.wait_for()
    assert table.locator("tbody tr").count() == 10
    table.locator("th button >> nth=1").click()
    table.locator("th button >> nth=1").click()
    assert table.locator("tbody td").first.inner_text() == "station 24"
    visitor.page.wait_for_selector("[data-kind='plotly'] .main-svg")
    visitor.page.click(".references >> text=notes.md")
    visitor.page.wait_for_selector(".beside >> text=Beside the chat.")
    visitor.page.click(".beside [aria-label='Close']")
    visitor.page.click("text=Tell me more")
    visitor.wait_for("More, as you wish: 1")


def test_a_file_is_asked_for_and_read(visitor: Visitor) -> None:
    visitor.say("file")
    visitor.page.wait_for_selector(".drop-zone")
    chosen = {"name": "hello.txt", "mimeType": "text/plain", "buffer": b"hello from a file"}
    visitor.page.set_input_files(".drop-zone input", chosen)
    visitor.page.click(".drop-zone .primary")
    visitor.wait_for("Read: hello from a file")


def test_a_file_goes_along_with_a_message(visitor: Visitor) -> None:
    chosen = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"notes"}
    visitor.page.set_input_files(".composer input[type=file]", chosen)
    visitor.page.wait_for_selector(".attachments [aria-busy=false]")
    visitor.say("with a file")
    visitor.wait_for("You said: with a file")
    visitor.page.wait_for_selector(".message.user .file-card >> text=notes.txt")


def test_settings(visitor: Visitor) -> None:
    visitor.say("settings")
    visitor.page.click("[aria-label='Settings']")
    visitor.page.locator("[type=range]").fill("1.2")
    visitor.page.click("[role=switch]")
    visitor.page.click(".dialog-foot .primary")
    visitor.page.wait_for_selector("[aria-label='Settings']:focus")
    visitor.wait_for("Temperature 1.2, stream False.")
