"""Files that came with a message, as the elements that an app finds in it."""

from __future__ import annotations

import asyncio

from kaiwa.apps.content import elements
from kaiwa.apps.content.message import Message
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.records import ElementKind
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.work.session import Session

_CLASSES: dict[str, type[elements.Element]] = {
    "image": elements.Image,
    "audio": elements.Audio,
    "video": elements.Video,
    "pdf": elements.Pdf,
}


def kind_of(mime: str) -> ElementKind:
    """How a page shows a file of this MIME type."""
    if mime == "application/pdf":
        return "pdf"
    # SVG may carry scripts: it is a file to download, not a picture
    family = mime.partition("/")[0]
    if mime == "image/svg+xml" or family not in ("image", "audio", "video"):
        return "file"
    return "image" if family == "image" else "audio" if family == "audio" else "video"


def element_of(file: KeepFile, message_id: str) -> records.Element:
    """The element by which pages show an uploaded file."""
    return records.Element(
        id=file.file_id,
        kind=kind_of(file.mime),
        name=file.name,
        mime=file.mime,
        url=f"files/{file.file_id}",
        num_bytes=file.num_bytes,
        for_id=message_id,
    )


async def attach(message: Message, said: records.Message, session: Session) -> None:
    """Give the message its files, each with the `path` of its bytes."""
    for file_id in said.element_ids:
        found = await asyncio.to_thread(session.database.file, file_id)
        if found is not None:
            file = found[1]
            element_class = _CLASSES.get(kind_of(file.mime), elements.File)
            path = session.files.path(session.chat_id, file.file_id)
            element = element_class(name=file.name, path=path, mime=file.mime, id=file.file_id)
            element.for_id = message.id
            message.elements.append(element)
