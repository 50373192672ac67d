"""The way in, where an app wants to know who somebody is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from running import APPS, RunningApp
from visitor import Visitor


@pytest.fixture
def guarded(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApp]:
    app = RunningApp(APPS / "login.py", tmp_path_factory.mktemp("login"))
    yield app
    app.stop()


def test_log_in_choose_who_answers_and_log_out(visit: Callable[..., Visitor], guarded: RunningApp) -> None:
    visitor = visit(guarded)
    visitor.expect("403", "401")
    visitor.page.fill("[name=username]", "ada")
    visitor.page.fill("[name=password]", "wrong")
    visitor.page.click(".login .primary")
    visitor.page.wait_for_selector("[role=alert]")
    visitor.page.fill("[name=password]", "right")
    visitor.page.click(".login .primary")
    visitor.page.wait_for_selector(".welcome")
    assert "Knows recipes." in visitor.page.inner_text(".welcome")
    visitor.page.select_option(".profiles", "poet")
    visitor.page.wait_for_selector(".welcome:has-text('Knows verse.')")
    visitor.page.click(".starter")
    visitor.wait_for("I am the poet.")
    visitor.wait_for("You are ada.")
    visitor.page.click("[aria-label='Log out']")
    visitor.page.wait_for_selector(".login")
