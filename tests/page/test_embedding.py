"""The page in another site's pages, and talking with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from running import APPS, RunningApp
from visitor import Visitor

SITE = """<!doctype html><title>A shop</title><h1 class="welcome">A shop</h1>
<script>
  window.kaiwaFunctions = { add: ({ a, b }) => a + b };
  addEventListener("kaiwa-message", (event) => { document.title = `total ${event.detail.total}` });
</script>
<script src="APPembed.js" data-label="Ask us"></script>
"""


@pytest.fixture
def shop(
    browser: object, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, RunningApp]]:
    """A site of somebody else, and the app that it embeds."""
    pages: list[bytes] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages[0] if self.path == "/" else b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("EMBEDDING_SITE", address)
    app = RunningApp(APPS / "embedded.py", tmp_path_factory.mktemp("embedded"))
    pages.append(SITE.replace("APP", app.url).encode())
    thread = threading.Thread(target=server.serve_forever, name="site")
    thread.start()
    yield address, app
    server.shutdown()
    thread.join()
    server.server_close()
    app.stop()


def test_the_widget_and_the_site_around_it(
    visit_address: Callable[[str], Visitor], shop: tuple[str, RunningApp]
) -> None:
    visitor = visit_address(shop[0])
    visitor.expect("404")
    opened = visitor.page.expect_event("framenavigated", lambda frame: frame.url.startswith(shop[1].url))
    with opened as navigated:
        visitor.page.evaluate("kaiwa.open()")
    frame = navigated.value
    frame.wait_for_selector(".welcome")
    frame.fill(".composer textarea", "how much?")
    frame.press(".composer textarea", "Enter")
    frame.wait_for_selector("text=The site says 5.")
    visitor.page.wait_for_function("document.title === 'total 5'")
