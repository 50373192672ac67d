"""An app at work: its chats on disk, its functions in their loop, and whoever shows them. No network in here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from kaiwa.apps.data_layer import Mirror
from kaiwa.apps.definition import Declared, Definition
from kaiwa.apps.protocol.frames import Busy, Frame
from kaiwa.apps.storage.database import Database
from kaiwa.apps.storage.files import Files
from kaiwa.apps.storage.log import Log, Written
from kaiwa.apps.storage.replay import replay
from kaiwa.apps.work.calling import Calling
from kaiwa.apps.work.chat_state import ChatState
from kaiwa.apps.work.chats import Chats, Visitor, closing
from kaiwa.apps.work.handler_loop import HandlerLoop
from kaiwa.apps.work.session import Session
from kaiwa.apps.work.watchdog import Watchdog
from kaiwa.errors import KaiwaError, StorageFailed
from kaiwa.runtime.pool.admission import Load
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.process.model_process import in_process
from kaiwa.weights.lock import exclusive

MAX_WAIT_S = 3.0
"""How long to wait for a server that is about to end."""

_logger = logging.getLogger("kaiwa.apps")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises `StorageFailed` where another one keeps it."""
    until = time.monotonic() + MAX_WAIT_S

    def wait() -> None:
        if time.monotonic() > until:
            raise StorageFailed(
                f"the chats in {folder} are in use: the app is being served already",
                hint="end the other `kaiwa run`; one process at a time writes an app's chats",
            )

    with exclusive(folder / "lock", on_wait=wait):
        yield


class Audience(Protocol):
    """Whoever shows an app to people. Called from any thread, and never waits."""

    def tell(self, written: Sequence[Written]) -> None:
        """This was written to the log."""
        ...

    def post(self, chat_id: str, frame: Frame) -> None:
        """For the pages that follow a chat, now."""
        ...

    def post_to_all(self, frame: Frame) -> None:
        """For every page, now."""
        ...

    def is_followed(self, chat_id: str) -> bool:
        """Whether a page shows the chat."""
        ...


class Service:
    """Everything that an app needs while people use it.

    `folder` is where uploaded files are kept, and chats, unless `database_url` names another place for them.
    `load_model` is how a model comes into memory, by its name and options: into this process, or into a child.

    Raises `StorageFailed` where chats cannot be kept there.
    """

    def __init__(
        self,
        app: Definition,
        folder: Path,
        *,
        database_url: str | None = None,
        load_model: Callable[..., Load] = in_process,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._stack.enter_context(_alone_in(folder))
        self.database = Database(database_url) if database_url else Database.in_file(folder / "chats.sqlite3")
        self.files = Files(folder / "files")
        self.log = Log(self.database)
        self.loop = HandlerLoop()
        self.calling = Calling(app, self.loop)
        self.pool = ModelPool()
        self._load_model = load_model
        self._adopted: set[str] = set()
        self._adopting = threading.Lock()
        self.take_in(app)
        self.chats = Chats(self.calling, new_session=self._new_session, is_followed=self.is_followed)
        self.is_busy = False
        self._audiences: list[Audience] = []
        self.log.listen(self._clean_up)
        self._close_lost_runs()
        self._watchdog = Watchdog(self.loop, self._set_busy)
        self._sweeping = self.loop.submit(self.chats.sessions.sweep_forever())

    @property
    def app(self) -> Definition:
        """The app as it is now: reading its code again replaces it."""
        return self.calling.app

    def attach(self, audience: Audience) -> None:
        """Tell this audience what happens."""
        self._audiences = [*self._audiences, audience]
        self.log.listen(audience.tell)

    def detach(self, audience: Audience) -> None:
        """Tell it no more."""
        self._audiences = [other for other in self._audiences if other is not audience]
        self.log.forget(audience.tell)

    def start(self) -> None:
        """Let the app do what it does first, and load the models that it wants loaded.

        Raises what the app raises.
        """
        self.loop.submit(self.calling.call("on_app_startup")).result()
        layer = self.loop.submit(self.calling.call("data_layer")).result()
        if layer is not None:
            self.log.listen(Mirror(self.calling, layer).tell)
        for model in self.app.models:
            if model.preload:
                self.loop.submit(self._preload(model))

    def close(self) -> None:
        """End every run and chat session, let the app do what it does last, and write what is left."""
        self._sweeping.cancel()
        if not self.is_busy:
            self.loop.submit(self._end_app()).result()
        self.loop.close()
        self._watchdog.close()
        self.log.close()
        self.pool.close()
        self.database.close()
        self._stack.close()

    def post(self, chat_id: str, frame: Frame) -> None:
        """Tell the pages that follow a chat."""
        for audience in self._audiences:
            audience.post(chat_id, frame)

    def post_to_all(self, frame: Frame) -> None:
        """Tell every page."""
        for audience in self._audiences:
            audience.post_to_all(frame)

    def is_followed(self, chat_id: str) -> bool:
        """Whether a page shows the chat."""
        return any(audience.is_followed(chat_id) for audience in self._audiences)

    def take_in(self, app: Definition) -> None:
        """Let this app answer from now on; the models that it declares are those of the one before it."""
        for model in app.models:
            self.adopt(model)
        self.calling.app = app

    def adopt(self, model: Declared) -> ModelPool:
        """Take a model that somebody declared into the pool, which is returned; one that is in it already stays."""
        with self._adopting:
            if model.key not in self._adopted:
                self.pool.add(model.key, model.own_load or self._load_model(model.name, **model.options))
                self._adopted.add(model.key)
        model.bind(self.pool)
        return self.pool

    async def _preload(self, model: Declared) -> None:
        try:
            await model.load()
        except KaiwaError as error:
            _logger.error("%s could not be loaded: %s", model.name, error)

    async def _end_app(self) -> None:
        await self.chats.sessions.drop_all()
        await self.calling.tell("on_app_shutdown")

    def _new_session(self, chat_id: str, visitor: Visitor) -> Session:
        return Session(
            chat_id,
            loop=self.loop.loop,
            user=visitor.user,
            profile=visitor.profile,
            language=visitor.language,
            author=self.app.author,
            rename_author=self._rename_author,
            log=self.log,
            database=self.database,
            files=self.files,
            post=self.post,
            adopt=self.adopt,
        )

    async def _rename_author(self, author: str) -> str:
        if not self.calling.has("author_rename"):
            return author
        return str(await self.calling.call("author_rename", author))

    def _set_busy(self, is_busy: bool) -> None:
        self.is_busy = is_busy
        self.post_to_all(Busy(is_busy=is_busy))

    def _clean_up(self, written: Sequence[Written]) -> None:
        """Take the files of chats away that are gone."""
        for one in written:
            if one.is_deleted:
                self.files.remove_chat(one.chat_id)

    def _close_lost_runs(self) -> None:
        """Say of each run that went on when the last server ended, that it is lost; its text so far stays."""
        for chat_id in self.database.unfinished():
            self.log.append(chat_id, *closing(ChatState.replayed(replay(self.database, chat_id))))
