"""What stands around the conversation: commands, modes, tasks, a sidebar, feedback, and the list of chats."""

from __future__ import annotations

from visitor import Visitor


def test_commands_modes_tasks_sidebar_and_toasts(visitor: Visitor) -> None:
    visitor.say("around")
    visitor.page.wait_for_selector(".toast[data-kind='success']:has-text('There you are.')")
    visitor.page.wait_for_selector(".beside:has-text('A note beside the chat.')")
    tasks = visitor.page.locator(".task-list li")
    assert [task.get_attribute("data-state") for task in tasks.all()] == ["done", "running", "ready"]
    visitor.wait_until_idle()
    visitor.field.fill("/se")
    visitor.page.wait_for_selector(".command-menu [aria-selected=true]")
    visitor.field.press("Enter")
    visitor.page.select_option(".mode select", "deep")
    visitor.say("kaiwa")
    visitor.wait_for("You said: kaiwa (/search) [deep]")
    visitor.page.click(".beside [aria-label='Close']")
    visitor.page.click(".composer .chip:has-text('draw')")
    visitor.say("a cat")
    visitor.wait_for("You said: a cat (/draw) [deep]")


def test_a_form_is_filled_in(visitor: Visitor) -> None:
    visitor.say("form")
    form = visitor.page.locator(".ask-element")
    form.locator("input[type=number]").fill("3")
    form.locator("input[type=checkbox]").uncheck()
    form.locator(".primary").click()
    visitor.wait_for("3 x soup, hot: False")


def test_feedback_with_a_word(visitor: Visitor) -> None:
    visitor.say("hello")
    visitor.wait_for("You said: hello")
    visitor.page.click("[aria-label='Bad answer']")
    comment = visitor.page.locator(".tools .line-field")
    comment.fill("too short")
    comment.press("Enter")
    visitor.wait_for("Feedback -1: too short")


def test_chats_are_found_renamed_and_deleted(visitor: Visitor) -> None:
    visitor.say("about whales")
    visitor.wait_for("You said: about whales")
    visitor.page.click(".new-chat")
    visitor.page.wait_for_selector(".welcome")
    visitor.say("about ships")
    visitor.wait_for("You said: about ships")
    visitor.page.fill(".search input", "whales")
    visitor.page.wait_for_selector(".chat-list:not(:has-text('ships'))")
    visitor.page.click(".chat-row:has-text('whales') >> nth=0")
    visitor.wait_for("You said: about whales")
    row = visitor.page.locator(".chat-row[aria-current]")
    row.hover()
    row.locator("[aria-label='Delete']").click()
    visitor.page.click(".chat-row.asking .danger")
    visitor.page.wait_for_selector(".welcome")
    visitor.page.go_back()
    visitor.page.wait_for_selector(".problem, .welcome, .message")
