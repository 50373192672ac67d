"""Pages: everybody who looks at an app now, and how what happens reaches them. One event loop, and no network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from kaiwa.apps.protocol.frames import ChatChanged, ChatRemoved, Frame
from kaiwa.apps.storage.log import Written
from kaiwa.apps.work.page import Page


class Pages:
    """An `Audience`. What other threads tell it is handed on in the loop that it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pages: set[Page] = set()
        self._followers: dict[str, set[Page]] = {}

    def add(self, page: Page) -> None:
        """Somebody came."""
        self._pages.add(page)

    def remove(self, page: Page) -> None:
        """Somebody left. Their chats go on."""
        self._pages.discard(page)
        for chat_id in list(page.feeds):
            self.unfollow(page, chat_id)

    def follow(self, page: Page, chat_id: str, since: int) -> None:
        """Let the page have the chat's events after the offset `since`, now and from now on."""
        page.follow(chat_id, since)
        self._followers.setdefault(chat_id, set()).add(page)

    def unfollow(self, page: Page, chat_id: str) -> None:
        """Let the page have them no longer."""
        page.feeds.pop(chat_id, None)
        followers = self._followers.get(chat_id, set())
        followers.discard(page)
        if not followers:
            self._followers.pop(chat_id, None)

    def is_followed(self, chat_id: str) -> bool:
        return chat_id in self._followers

    def tell(self, written: Sequence[Written]) -> None:
        self._call(self._tell, written)

    def post(self, chat_id: str, frame: Frame) -> None:
        self._call(self._post, chat_id, frame)

    def post_to_all(self, frame: Frame) -> None:
        self._call(self._send, self._pages, frame)

    def _call(self, *work: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(*work)  # type: ignore[arg-type]  # a function and its arguments

    def _tell(self, written: Sequence[Written]) -> None:
        for one in written:
            for page in self._followers.get(one.chat_id, ()):
                page.feeds[one.chat_id].offer(one.since, one.bodies)
                page.wake()
            owners = [page for page in self._pages if page.identity.owner == one.owner] if _is_listed(one) else []
            if one.is_deleted:
                self._send(owners, ChatRemoved(chat_id=one.chat_id))
                for page in list(self._followers.get(one.chat_id, ())):
                    self.unfollow(page, one.chat_id)
            elif one.chat is not None:
                self._send(owners, ChatChanged(chat=one.chat))

    def _post(self, chat_id: str, frame: Frame) -> None:
        self._send(self._followers.get(chat_id, ()), frame)

    def _send(self, pages: Iterable[Page], frame: Frame) -> None:
        text = frame.model_dump_json()
        for page in list(pages):
            page.send_text(text)


def _is_listed(written: Written) -> bool:
    """Whether the list of chats is to hear of it."""
    return written.is_deleted or (written.chat is not None and written.chat.num_messages > 0)
