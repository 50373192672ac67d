"""Elements: text, images, files, tables and figures to look at with a message. One table says what kinds there are."""

from __future__ import annotations

import asyncio
import io
import json
import mimetypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from kaiwa.apps.context import current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import ElementAdded, ElementRemoved
from kaiwa.apps.protocol.records import ElementKind
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.storage.files import Files
from kaiwa.apps.work.ids import new_id
from kaiwa.errors import InvalidOption

Display = Literal["inline", "side", "page"]
Size = Literal["small", "medium", "large"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A row of the table: the MIME type where nothing says another, and which properties an element may have."""

    mime: str
    props: frozenset[str] = frozenset()


KINDS: dict[ElementKind, _Kind] = {
    "text": _Kind("text/plain"),
    "image": _Kind("image/png"),
    "pdf": _Kind("application/pdf", frozenset({"page"})),
    "audio": _Kind("audio/mpeg", frozenset({"auto_play"})),
    "video": _Kind("video/mp4", frozenset({"player_config"})),
    "file": _Kind("application/octet-stream"),
    "plotly": _Kind("application/json"),
    "dataframe": _Kind("application/json"),
    "custom": _Kind(""),
}


class Element:
    """Something to look at. It comes from `content`, from the file at `path`, or from an `url`: from one of them.

    `display` is where: in the message, beside the chat, or on a page of its own. Only pages that may see its chat can
    read it. A page loads an `url` elsewhere only where the app allows that site (`App(sources=…)`).

    Raises `InvalidOption` where there is not exactly one source, or a property that this kind has not.
    """

    kind: ClassVar[ElementKind] = "file"

    def __init__(
        self,
        name: str = "",
        url: str | None = None,
        path: str | os.PathLike[str] | None = None,
        content: str | bytes | None = None,
        display: Display = "inline",
        size: Size = "medium",
        language: str | None = None,
        mime: str | None = None,
        *,
        id: str | None = None,
        **props: Any,
    ) -> None:
        self.id = id or new_id()
        self.name = name or (Path(path).name if path is not None else self.kind)
        self.url = url
        self.path = path
        self.content = content
        self.display: Display = display
        self.size: Size = size
        self.language = language
        self.mime = mime or self._guess_mime()
        self.props = props
        self.for_id: str | None = None
        self._check()

    async def send(self, for_id: str | None = None) -> Self:
        """Show it with the message or step of this id, or with None where the app puts it (the sidebar)."""
        context = current()
        session = context.session
        num_bytes = await asyncio.to_thread(self.store, session.files, session.chat_id)
        self.for_id = for_id
        if num_bytes is not None:
            context.emit(KeepFile(self.id, self.name, self.mime, num_bytes))
        context.emit(ElementAdded(element=self.record(num_bytes)))
        return self

    async def remove(self) -> None:
        """Take it away."""
        current().emit(ElementRemoved(element_id=self.id))

    def store(self, files: Files, chat_id: str) -> int | None:
        """Keep the content among the chat's files; its number of bytes. None where it has none of its own."""
        content = self._bytes()
        if content is None:
            return None
        files.write(chat_id, self.id, content)
        return len(content)

    def record(self, num_bytes: int | None) -> records.Element:
        """As pages know it."""
        return records.Element(
            id=self.id,
            kind=self.kind,
            name=self.name,
            mime=self.mime,
            url=self.url if num_bytes is None else f"files/{self.id}",
            num_bytes=num_bytes,
            display=self.display,
            size=self.size,
            language=self.language,
            for_id=self.for_id,
            props=self.props,
        )

    def _bytes(self) -> bytes | None:
        if self.path is not None:
            return Path(self.path).read_bytes()
        return self.content.encode() if isinstance(self.content, str) else self.content

    def _guess_mime(self) -> str:
        named = str(self.path or self.url or self.name)
        return mimetypes.guess_type(urlsplit(named).path)[0] or KINDS[self.kind].mime

    def _check(self) -> None:
        sources = [name for name in ("url", "path", "content") if getattr(self, name) is not None]
        if len(sources) != 1:
            got = " and ".join(sources) or "none of them"
            raise InvalidOption(
                f"the element {self.name!r} comes from one of url, path and content, not from {got}",
                hint="leave the others out",
            )
        if self.url is not None and urlsplit(self.url).scheme not in ("http", "https"):
            raise InvalidOption(f"the url {self.url!r} begins with neither http:// nor https://")
        if unknown := set(self.props) - KINDS[self.kind].props:
            raise InvalidOption(
                f"an element of kind {self.kind} has no {sorted(unknown)[0]!r}",
                hint=f"it may have {', '.join(sorted(KINDS[self.kind].props)) or 'no properties of its own'}",
            )


class Text(Element):
    """Text, or with a `language` code."""

    kind = "text"


class Image(Element):
    """A picture."""

    kind = "image"


class Pdf(Element):
    """A PDF, opened at `page`."""

    kind = "pdf"


class Audio(Element):
    """Something to hear; with `auto_play`, at once."""

    kind = "audio"


class Video(Element):
    """Something to watch."""

    kind = "video"


class File(Element):
    """Something to download."""

    kind = "file"


class Plotly(Element):
    """A figure of plotly."""

    kind = "plotly"

    def __init__(self, figure: Any, name: str = "", **options: Any) -> None:
        super().__init__(name, content=figure.to_json(), **options)


class Pyplot(Element):
    """A figure of matplotlib, as a picture."""

    kind = "image"

    def __init__(self, figure: Any, name: str = "", **options: Any) -> None:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight", dpi=144)
        super().__init__(name, content=picture.getvalue(), mime="image/png", **options)


class Dataframe(Element):
    """A table of pandas or polars."""

    kind = "dataframe"

    def __init__(self, data: Any, name: str = "", **options: Any) -> None:
        # polars gives rows as they are; pandas wants to be told that names are not needed
        rows = data.rows() if hasattr(data, "rows") else data.itertuples(index=False, name=None)
        table = {"columns": [str(column) for column in data.columns], "rows": [list(row) for row in rows]}
        super().__init__(name, content=json.dumps(table, ensure_ascii=False, default=str), **options)


class CustomElement(Element):
    """Something that the page shows by a component of this name, from its `props`."""

    kind = "custom"

    def __init__(
        self, name: str, props: Mapping[str, Any] | None = None, display: Display = "inline", *, id: str | None = None
    ) -> None:
        super().__init__(name, content="", display=display, id=id)
        self.props = dict(props or {})

    def _bytes(self) -> bytes | None:
        return None
