"""A session: what the server holds of a chat while somebody uses it. It lives longer than any connection.

Its chat's events are in the log; here is what an app keeps beside them, and what waits for people.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from kaiwa.apps.content.growing import Growing
from kaiwa.apps.protocol.events import Event
from kaiwa.apps.protocol.frames import Frame
from kaiwa.apps.protocol.widgets import SettingValue, Tab
from kaiwa.apps.storage.entries import Entry
from kaiwa.apps.storage.files import Files
from kaiwa.apps.user import User
from kaiwa.apps.work.asks import Asks

if TYPE_CHECKING:  # an app's file is read before anything is kept
    from kaiwa.apps.storage.database import Database
    from kaiwa.apps.storage.log import Log
    from kaiwa.runtime.pool.model_pool import ModelPool


class Said(Protocol):
    """What a session remembers of a message: enough to tell a model of it."""

    id: str

    @property
    def content(self) -> str: ...

    @property
    def type(self) -> str: ...


class Session:
    """One chat in use.

    `post` sends a frame of the moment to the pages that follow the chat.
    """

    def __init__(
        self,
        chat_id: str,
        *,
        loop: AbstractEventLoop,
        user: User | None,
        profile: str | None,
        language: str,
        author: str,
        rename_author: Callable[[str], Awaitable[str]],
        log: Log,
        database: Database,
        files: Files,
        post: Callable[[str, Frame], None],
        adopt: Callable[[Any], ModelPool],
    ) -> None:
        self.chat_id = chat_id
        self.loop = loop
        self.user = user
        self.profile = profile
        self.language = language
        self.client_type = "webapp"
        self.author = author
        """Who speaks where a message names nobody."""
        self.rename_author = rename_author
        self.log = log
        self.database = database
        self.files = files
        self.variables: dict[str, Any] = {}
        """What the app keeps in `user_session`."""
        self.history: list[Said] = []
        """What `chat_context` gives: the messages of this chat, in order."""
        self.tabs: tuple[Tab, ...] = ()
        self.settings: dict[str, SettingValue] = {}
        self.settings_before: dict[str, SettingValue] = {}
        """Of a chat that goes on: what a person had set, until the app defines its settings again."""
        self.is_used = False
        """Whether a person has said anything in it."""
        self.asks = Asks()
        self.calls: dict[str, Future[Any]] = {}
        """Functions of the page around this one that the app waits for."""
        self.growing: dict[str, Growing] = {}
        """Messages and steps that still grow, by id; they end with the run that they began in."""
        self.adopt = adopt
        """Takes a model that somebody declared into the pool of this app."""
        self._post = post

    def emit(self, *items: Event | Entry) -> None:
        """Add to the chat's log, from any thread."""
        self.log.append(self.chat_id, *items)

    def post(self, frame: Frame) -> None:
        """Tell the pages that follow this chat now; nobody hears of it later."""
        self._post(self.chat_id, frame)
