"""Files over HTTP: people send them, pages show them."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.protocol.records import File
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.work.service import Service
from kaiwa.errors import Refused

_MAX_NAME_CHARS = 200
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+")
_SHOWN = ("image/", "audio/", "video/", "application/pdf", "application/json", "text/plain")
_SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class FileDesk:
    """Takes and gives files of one app."""

    def __init__(self, service: Service, identities: Identities) -> None:
        self._service = service
        self._identities = identities

    async def put(self, request: Request) -> Response:
        """`PUT api/files/CHAT/FILE?name=…`: write what comes to the disk as it comes, up to the app's bound."""
        uploads, chat_id = self._service.app.uploads, request.path_params["chat_id"]
        await self._check_owner(request, chat_id)
        if not uploads.is_enabled:
            raise Refused("not_found", "this app takes no files")
        name = _NOT_IN_NAMES.sub("_", request.query_params.get("name", "")).strip(" .")[-_MAX_NAME_CHARS:] or "file"
        mime = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        mime = mime if _MIME.fullmatch(mime) else "application/octet-stream"
        file_id = request.path_params["file_id"]
        num_bytes = await self._service.files.receive(chat_id, file_id, request.stream(), max_bytes=uploads.max_bytes)
        self._service.log.append(chat_id, KeepFile(file_id, name, mime, num_bytes))
        await asyncio.wrap_future(self._service.log.settled())
        file = File(id=file_id, name=name, mime=mime, num_bytes=num_bytes, url=f"files/{file_id}")
        return Response(file.model_dump_json(), media_type="application/json")

    async def get(self, request: Request) -> Response:
        """`GET files/FILE`: its bytes, in a sandbox where a browser could run them."""
        file_id = request.path_params["file_id"]
        found = await asyncio.to_thread(self._service.database.file, file_id)
        if found is None:
            raise _no_file(file_id)
        chat_id, file = found
        await self._check_owner(request, chat_id)
        path = self._service.files.path(chat_id, file_id)
        if not path.is_file():
            raise _no_file(file_id)
        is_shown = (
            file.mime.startswith(_SHOWN) and file.mime != "image/svg+xml" and "download" not in request.query_params
        )
        disposition = "inline" if is_shown else "attachment"
        headers = {
            "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(file.name)}",
            "Cache-Control": "private, max-age=31536000, immutable",
        }
        if file.mime != "application/pdf":  # a browser's reader of PDF does not work in a sandbox
            headers["Content-Security-Policy"] = _SANDBOX
        else:
            headers["Content-Security-Policy"] = "frame-ancestors 'self'"
        return FileResponse(path, media_type=file.mime, headers=headers)

    async def _check_owner(self, request: Request, chat_id: str) -> None:
        identity = await self._identities.of(request)
        if identity is None:
            raise Refused("login", "nobody is logged in", hint="log in first")
        found = await asyncio.to_thread(self._service.database.chat, chat_id)
        if found is None or found[1] != identity.owner:
            raise Refused("not_found", f"there is no chat {chat_id!r}")


def _no_file(file_id: str) -> Refused:
    return Refused("not_found", f"there is no file {file_id!r}")
