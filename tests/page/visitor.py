"""Somebody at the page: what they do, and what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

PATIENCE_MS = 30_000
# What a browser says of a connection that we cut on purpose.
EXPECTED = ("ERR_CONNECTION_REFUSED", "ERR_INTERNET_DISCONNECTED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")


class Visitor:
    """A browser's profile of its own, with one page or more."""

    def __init__(self, browser: Browser, url: str, *, is_phone: bool = False, language: str = "en-US") -> None:
        size: dict[str, Any] = {"width": 390, "height": 844} if is_phone else {"width": 1280, "height": 860}
        self.context = browser.new_context(viewport=size, has_touch=is_phone, locale=language)
        self.context.set_default_timeout(PATIENCE_MS)
        self.problems: list[str] = []
        self._expected = list(EXPECTED)
        self.page = self.open(url)

    def open(self, url: str) -> Page:
        """One more tab."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.goto(url)
        page.wait_for_selector(".welcome, .turn, .login, .problem")
        return page

    def expect(self, *words: str) -> None:
        """Errors with one of these words are what this test is about."""
        self._expected += words

    def say(self, text: str) -> None:
        """Type a message and press Enter."""
        self.field.fill(text)
        self.field.press("Enter")

    @property
    def field(self) -> Locator:
        return self.page.locator(".composer textarea")

    @property
    def answer(self) -> Locator:
        """The last answer."""
        return self.page.locator(".message.assistant").last

    def wait_for(self, text: str) -> None:
        """Wait until somebody has said this."""
        self.page.wait_for_selector(f".message:has-text({text!r})")

    def wait_until_idle(self) -> None:
        """Wait until nothing runs."""
        self.page.wait_for_selector(".round.stop", state="detached")

    def leave(self) -> None:
        """Close the page; it may not have reported errors."""
        self.context.close()
        unexpected = [problem for problem in self.problems if not any(word in problem for word in self._expected)]
        assert not unexpected, f"the page reported: {unexpected}"
