"""App: one chat application, as its developer holds it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kaiwa.apps.definition import Definition
from kaiwa.apps.gateway.loopback import LOOPBACK

if TYPE_CHECKING:
    from kaiwa.apps.gateway.mounting import Mounted


class App(Definition):
    """A chat application.

        app = kw.App("Parrot")

        @app.on_message
        async def answer(message):
            await kw.Message(message.content).send()

    `description` is Markdown, shown where a chat is empty, or several by language: `{"en": …, "ja": …}`. `author` is
    who speaks where a message names nobody, by default the app's name. `sources` are sites from which elements may be
    loaded, `allowed_origins` those that may show the app within their own pages; both are none unless you say so.

    The decorators are those of the module: `@kw.on_message` is that of a default app.

    Raises `InvalidOption` for a source or origin that is not like "https://example.org".
    """

    def asgi(self, *, folder: Path | None = None, hosts: Collection[str] | None = LOOPBACK) -> Mounted:
        """The app as an ASGI program, to mount into one of your own: `program.mount("/chat", app.asgi())`.

        It begins with its first request, or with its `lifespan` where your program runs that. `folder` is where chats
        are kept, by default one for the app's name; `hosts` are the names by which browsers may reach it, None for any.
        """
        from kaiwa.apps.gateway.mounting import Mounted  # an app that is only described needs no web server

        return Mounted(self, folder=folder, hosts=hosts)
