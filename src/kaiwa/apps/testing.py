"""AppTester: use an app as people do, without a browser or a network. Nothing in between is a stand-in."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from kaiwa.apps.app_file import load_app
from kaiwa.apps.definition import Definition
from kaiwa.apps.protocol import commands as c
from kaiwa.apps.protocol.events import RunFinished, RunStarted
from kaiwa.apps.protocol.frames import PROTOCOL_VERSION, Accepted, Events, Frame, Rejected, Toast, Welcome
from kaiwa.apps.protocol.records import Ask, Element, Message, Step
from kaiwa.apps.storage.catalog import text_of
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.user import User
from kaiwa.apps.work.chat_state import ChatState
from kaiwa.apps.work.desk import Desk
from kaiwa.apps.work.ids import new_id
from kaiwa.apps.work.page import Identity, Page
from kaiwa.apps.work.pages import Pages
from kaiwa.apps.work.service import Service
from kaiwa.closing import Closing
from kaiwa.errors import Refused

T = TypeVar("T")

PATIENCE_S = 10.0
_FRAME: TypeAdapter[Frame] = TypeAdapter(Frame)


class AppTester(Closing):
    """An app at work, for the length of a `with` block.

        with AppTester(app) as tester:
            chat = tester.start()
            chat.say("Hello")
            assert chat.last == "Hello yourself"

    `app` is an `App` or the path of its file. `folder` is where its chats are kept, by default one that goes with it.
    """

    def __init__(self, app: Definition | Path | str, *, folder: Path | None = None, user: User | None = None) -> None:
        self.app = app if isinstance(app, Definition) else load_app(Path(app))
        self._temporary = tempfile.TemporaryDirectory() if folder is None else None
        self._user = user
        self.service = Service(self.app, folder or Path(self._temporary.name if self._temporary else "."))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kaiwa-tester", daemon=True)
        self._thread.start()
        self.pages = self._call(self._make_pages())
        self.desk = Desk(self.service, self.pages)
        self._chats: list[ChatTester] = []
        self.service.start()

    def start(self, *, profile: str | None = None, language: str = "en") -> ChatTester:
        """Begin a chat, and wait until the app has done what it does then."""
        chat = self._join(new_id(), language)
        chat.send("new_chat", profile=profile)
        if self.app.hooks.find("on_chat_start") is not None:
            chat.wait_for_run(0)
        return chat

    def open(self, chat_id: str, *, since: int = 0) -> ChatTester:
        """Look at a chat in one more page; `since` is the last event that this page knows already."""
        chat = self._join(chat_id, "en")
        chat.send("open_chat", since=since)
        return chat

    def close(self) -> None:
        """Leave, and end the app."""
        for chat in self._chats:
            chat.leave()
        self.service.detach(self.pages)
        self.service.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _join(self, chat_id: str, language: str) -> ChatTester:
        owner = f"user:{self._user.identifier}" if self._user else "local"
        chat = self._call(self._make_chat(chat_id, Identity(owner, self._user)))
        self._chats.append(chat)
        chat.send("hello", version=PROTOCOL_VERSION, language=language)
        return chat

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _make_pages(self) -> Pages:
        pages = Pages()
        self.service.attach(pages)
        return pages

    async def _make_chat(self, chat_id: str, identity: Identity) -> ChatTester:
        woken = asyncio.Event()
        page = Page(identity, self.service.database, wake=woken.set)
        return ChatTester(self, chat_id, page, woken, self._loop)


class ChatTester:
    """A chat as one page shows it."""

    def __init__(
        self, tester: AppTester, chat_id: str, page: Page, woken: asyncio.Event, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.id = chat_id
        self.state = ChatState()
        """Everything that the page draws."""
        self.welcome: Welcome | None = None
        self.toasts: list[str] = []
        self.frames: list[Frame] = []
        """All that the page was sent, in order."""
        self.outcomes: list[str] = []
        """How each run ended."""
        self.offset = 0
        self._runs: dict[str | None, str] = {}
        self._ended: set[str] = set()
        self._tester = tester
        self._page = page
        self._loop = loop
        self._changed = threading.Condition()
        tester.pages.add(page)
        self._reading = loop.create_task(self._read(woken))

    @property
    def messages(self) -> list[Message]:
        """All messages, those of people too."""
        return list(self.state.messages.values())

    @property
    def texts(self) -> list[str]:
        """What all messages say."""
        return [text_of(message) for message in self.messages]

    @property
    def last(self) -> str:
        """What the last message says."""
        return self.texts[-1] if self.state.messages else ""

    @property
    def steps(self) -> list[Step]:
        """All steps."""
        return list(self.state.steps.values())

    @property
    def elements(self) -> list[Element]:
        """All elements."""
        return list(self.state.elements.values())

    @property
    def ask(self) -> Ask | None:
        """The question that is open."""
        return next(iter(self.state.asks.values()), None)

    def say(
        self, text: str, *, files: Sequence[Path | str] = (), command: str | None = None, wait: bool = True
    ) -> Message:
        """Say something and, unless told otherwise, wait until the app has answered or asks; the last message."""
        message_id = new_id()
        file_ids = [self._upload(Path(file)) for file in files]
        self.send("say", message_id=message_id, text=text, file_ids=file_ids, command=command)
        self.wait(lambda: message_id in self.state.messages)
        if wait:
            self.wait(lambda: self.ask or self._runs.get(message_id) in self._ended)
        return self.messages[-1]

    def click(self, label: str, *, wait: bool = True) -> None:
        """Press the button with this label or name; the latest of several."""
        named = [action for action in self.state.actions.values() if label in (action.label, action.name)]
        if not named:
            raise LookupError(
                f"no button is called {label!r}; there are {[a.label for a in self.state.actions.values()]}"
            )
        num_runs = len(self.outcomes)
        if self.ask is not None and named[-1] in self.ask.actions:
            self.send("answer", ask_id=self.ask.id, action_id=named[-1].id)
        else:
            self.send("press", action_id=named[-1].id)
        if wait:
            self.wait_for_run(num_runs)

    def answer(
        self,
        text: str | None = None,
        *,
        files: Sequence[Path | str] | None = None,
        values: dict[str, Any] | None = None,
        wait: bool = True,
    ) -> None:
        """Answer the question that is open."""
        self.wait(lambda: self.ask)
        assert self.ask is not None
        num_runs, ask_id = len(self.outcomes), self.ask.id
        file_ids = None if files is None else [self._upload(Path(file)) for file in files]
        self.send("answer", ask_id=ask_id, text=text, file_ids=file_ids, values=values)
        self.wait(lambda: ask_id not in self.state.asks)
        if wait:
            self.wait_for_run(num_runs)

    def set(self, **values: Any) -> None:
        """Change the chat's settings."""
        num_runs = len(self.outcomes)
        self.send("change_settings", values=values)
        if self._tester.app.hooks.find("on_settings_update") is not None:
            self.wait_for_run(num_runs)

    def stop(self) -> None:
        """Stop the run, and wait until it has stopped."""
        num_runs = len(self.outcomes)
        self.send("stop")
        self.wait(lambda: len(self.outcomes) > num_runs and not self.state.run_ids)

    def send(self, type: str, **fields: Any) -> Frame:
        """Send any command of the protocol; its answer. Raises `Refused` with what the server says against it."""
        command_id = new_id()
        body = {"type": type, "id": command_id, **fields}
        if type not in ("hello", "list_chats"):
            body["chat_id"] = self.id
        command = c.COMMAND.validate_python(body)
        asyncio.run_coroutine_threadsafe(self._tester.desk.handle(self._page, command), self._loop).result(PATIENCE_S)
        self.wait(lambda: self._answer_to(command_id))
        answer = self._answer_to(command_id)
        assert answer is not None
        if isinstance(answer, Rejected):
            raise Refused(answer.problem.code, answer.problem.message, hint=answer.problem.hint)
        return answer

    def wait_for_run(self, num_runs: int) -> None:
        """Wait until more than `num_runs` runs have ended and none is going on, or until the app asks."""
        self.wait(lambda: self.ask or (len(self.outcomes) > num_runs and not self.state.run_ids))

    def wait(self, is_true: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        """Wait for something that the page is to show, or that the app is to do."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while not is_true():
                if time.monotonic() > until:
                    raise TimeoutError(f"it did not come true within {timeout_s:g} s. The chat:\n{self.transcript()}")
                self._changed.wait(0.02)

    def transcript(self) -> str:
        """The chat in words, for errors and for reading."""
        lines = [f"{message.author} ({message.state}): {text_of(message)}" for message in self.messages]
        lines += [f"[{step.state}] {step.name} {step.output}".rstrip() for step in self.steps]
        return "\n".join(lines) or "(nothing)"

    def leave(self) -> None:
        """Close the page; the chat goes on."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(PATIENCE_S)

    def _upload(self, path: Path) -> str:
        import mimetypes

        service, file_id = self._tester.service, new_id()
        content = path.read_bytes()
        if len(content) > service.app.uploads.max_bytes:
            raise Refused("too_large", f"{path.name} is too large")
        service.files.write(self.id, file_id, content)
        mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        service.log.append(self.id, KeepFile(file_id, path.name, mime, len(content)))
        service.log.settled().result(PATIENCE_S)
        return file_id

    def _answer_to(self, command_id: str) -> Frame | None:
        answers = (frame for frame in self.frames if isinstance(frame, Accepted | Rejected) and frame.id == command_id)
        return next(answers, None)

    async def _leave(self) -> None:
        self._tester.pages.remove(self._page)
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self, woken: asyncio.Event) -> None:
        while True:
            await woken.wait()
            woken.clear()
            for text in await self._page.take():
                frame = _FRAME.validate_python(json.loads(text))
                with self._changed:
                    self._take(frame)
                    self._changed.notify_all()

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        match frame:
            case Events(chat_id=self.id, offset=offset, events=happened):
                self.offset = offset
                for event in happened:
                    self.state.apply(event)
                    if isinstance(event, RunStarted):
                        self._runs[event.message_id] = event.run_id
                    elif isinstance(event, RunFinished):
                        self._ended.add(event.run_id)
                        self.outcomes.append(event.outcome)
            case Toast(text=text):
                self.toasts.append(text)
            case Welcome():
                self.welcome = frame
