"""The page itself: what `web/` is built to, or a word about why it is not there."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

import kaiwa
from kaiwa.apps.gateway.identities import Identities
from kaiwa.errors import Refused

FOLDER = Path(kaiwa.__file__).parent / "ui" / "page"
_BASE = '<base href="./"'
_MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kaiwa</title></head>
<body><h1>The page is not built</h1>
<p>This copy of Kaiwa runs from its source, and its page has not been built yet: see <code>web/</code>.
The app itself is up.</p></body></html>
"""


class PageFiles:
    """Serves the page's files. `extra` is a folder of the app's own, for icons and components."""

    def __init__(self, identities: Identities, folder: Path = FOLDER) -> None:
        self._identities = identities
        self._folder = folder

    @property
    def is_built(self) -> bool:
        """Whether there is a page to serve."""
        return (self._folder / "index.html").is_file()

    async def index(self, request: Request) -> Response:
        """The page, for every address that is a chat's or nobody's."""
        if not self.is_built:
            return HTMLResponse(_MISSING)
        root = request.scope.get("root_path", "").rstrip("/")
        # The page's addresses are relative to the app, however deep the address is that a person opened.
        text = (self._folder / "index.html").read_text(encoding="utf-8").replace(_BASE, f'<base href="{root}/"', 1)
        response = HTMLResponse(text, headers={"Cache-Control": "no-cache"})
        self._identities.remember_visitor(request, response)
        return response

    async def file(self, request: Request) -> Response:
        """A script, style, font or picture of the page."""
        name = request.path_params["name"]
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise Refused("not_found", f"there is no {name!r} here")
        is_hashed = name.startswith("assets/")
        headers = {"Cache-Control": "public, max-age=31536000, immutable" if is_hashed else "no-cache"}
        if name == "embed.js":
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return FileResponse(path, headers=headers)
