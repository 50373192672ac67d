"""A page: one person's window to an app. What it is to be sent waits here, but never more than a bounded part of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kaiwa.apps.protocol.frames import Frame
from kaiwa.apps.storage.database import EVENTS_PER_PAGE, Database
from kaiwa.apps.storage.growth import coalesce
from kaiwa.apps.user import User

MAX_INBOX_CHARS = 256_000
"""A reader that is slower than this far behind reads from the log, where the rest waits without taking memory."""
MAX_WAITING_FRAMES = 1_000


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose chats a page sees. `user` is None where nobody has to log in."""

    owner: str
    user: User | None = None


@dataclass(slots=True)
class Feed:
    """How far a page is in a chat's log: it has the events up to `offset`, and `inbox` has those that come next."""

    offset: int
    inbox: list[str] = field(default_factory=list)
    num_chars: int = 0
    latest: int = 0
    """The last event that it has heard of."""
    is_behind: bool = True
    """Whether it goes on from the log, and not from the inbox."""

    def offer(self, since: int, bodies: Sequence[str]) -> None:
        """The events after `since` were written."""
        self.latest = max(self.latest, since + len(bodies))
        if self.is_behind or self.latest <= self.offset:
            return
        self.num_chars += sum(map(len, bodies))
        if since != self.offset + len(self.inbox) or self.num_chars > MAX_INBOX_CHARS:
            self.inbox, self.num_chars, self.is_behind = [], 0, True
        else:
            self.inbox += bodies

    def take(self) -> list[str]:
        """The events of the inbox, which are sent now."""
        bodies, self.inbox, self.num_chars = self.inbox, [], 0
        self.offset += len(bodies)
        return bodies


class Page:
    """Frames for one connection. `wake` is called when there may be some to `take`, in the pages' loop."""

    def __init__(
        self, identity: Identity, database: Database, *, wake: Callable[[], None], connection_id: str = ""
    ) -> None:
        self.identity = identity
        self.connection_id = connection_id
        self.language = "en"
        self.wake = wake
        self.feeds: dict[str, Feed] = {}
        """Of the chats that it follows."""
        self._database = database
        self._frames: list[str] = []

    @property
    def is_overrun(self) -> bool:
        """Whether it takes so little that it is better to begin anew."""
        return len(self._frames) > MAX_WAITING_FRAMES

    def send(self, frame: Frame) -> None:
        """Send a frame when there is time."""
        self.send_text(frame.model_dump_json())

    def send_text(self, text: str) -> None:
        """Send a frame that is JSON already."""
        self._frames.append(text)
        self.wake()

    def follow(self, chat_id: str, since: int) -> None:
        """Send the chat's events after `since`, and those to come."""
        self.feeds[chat_id] = Feed(since)
        self.wake()

    async def take(self) -> list[str]:
        """What is to be sent next, as JSON; empty where there is nothing for now."""
        frames, self._frames = self._frames, []
        for chat_id, feed in list(self.feeds.items()):
            bodies = await self._catch_up(chat_id, feed) if feed.is_behind else feed.take()
            if bodies:
                frames.append(_events_frame(chat_id, feed.offset, bodies))
        return frames

    async def _catch_up(self, chat_id: str, feed: Feed) -> list[str]:
        """The next events from the log. A feed that has the last of them goes on from its inbox."""
        bodies = await asyncio.to_thread(self._database.events, chat_id, feed.offset)
        feed.offset += len(bodies)
        # What was written while this was read is told of after it is there to be read.
        feed.is_behind = len(bodies) == EVENTS_PER_PAGE or feed.latest > feed.offset
        if feed.is_behind:
            self.wake()
        return coalesce(bodies)


def _events_frame(chat_id: str, offset: int, bodies: Sequence[str]) -> str:
    """An `Events` frame, of events that are JSON already."""
    return f'{{"type":"events","chat_id":"{chat_id}","offset":{offset},"events":[{",".join(bodies)}]}}'
