"""A real Chromium, and real apps for it to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kaiwa.apps.gateway.page_files import FOLDER
from required import absent, require_tool
from running import APPS, RunningApp
from visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


# Not of the session: as long as Playwright lives, its event loop has the thread, which tests elsewhere need.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("Playwright is not installed: pip install playwright")
    if not (FOLDER / "index.html").is_file():
        absent("the page is not built: python web/build.py")
    chromium = require_tool("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def stage(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApp]:
    """The app of many scenes, one for all tests of a module."""
    app = RunningApp(APPS / "stage.py", tmp_path_factory.mktemp("stage"))
    yield app
    app.stop()


@pytest.fixture
def visit_address(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Opens a page as somebody new, and at the end of the test sees that no page reported an error."""
    visitors: list[Visitor] = []

    def come(address: str, **options: Any) -> Visitor:
        visitors.append(Visitor(browser, address, **options))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.leave()


@pytest.fixture
def visit(visit_address: Callable[..., Visitor]) -> Callable[..., Visitor]:
    """Opens an app as somebody new."""
    return lambda app, **options: visit_address(app.url, **options)


@pytest.fixture
def visitor(visit: Callable[..., Visitor], stage: RunningApp) -> Visitor:
    """Somebody who has just opened the app of many scenes."""
    return visit(stage)
