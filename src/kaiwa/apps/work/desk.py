"""The desk: takes what pages ask for, checks it, and sees to it. Whatever needs the app's own code goes to its loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kaiwa.apps.content.actions import Action
from kaiwa.apps.content.feedback import Feedback
from kaiwa.apps.content.uploaded import element_of
from kaiwa.apps.languages import in_language
from kaiwa.apps.protocol import commands as c
from kaiwa.apps.protocol.events import ElementAdded, MessageAdded
from kaiwa.apps.protocol.frames import PROTOCOL_VERSION, Accepted, AppInfo, ChatList, Opened, Rejected, Welcome
from kaiwa.apps.protocol.records import Chat, Message, Problem, TextPart
from kaiwa.apps.storage.catalog import title_of
from kaiwa.apps.storage.entries import CreateChat, DeleteChat, KeepFile, KeepText, RenameChat
from kaiwa.apps.work.answering import answer as answer_question
from kaiwa.apps.work.chats import Visitor
from kaiwa.apps.work.offers import Offers
from kaiwa.apps.work.page import Page
from kaiwa.apps.work.pages import Pages
from kaiwa.apps.work.recently import Recently
from kaiwa.apps.work.service import Service
from kaiwa.errors import KaiwaError, Refused

T = TypeVar("T")

MAX_WAIT_S = 5.0
"""How long a page waits for the app's own code before it is told that the app is busy."""


class Desk:
    """Serves the pages of one service, in their loop."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages
        self._offers = Offers(service.calling)
        self._said = Recently(10_000)
        self._owned = Recently(10_000)
        self._handlers: dict[type[Any], Callable[[Page, Any], Awaitable[None]]] = {
            c.Hello: self._hello,
            c.ListChats: self._list_chats,
            c.NewChat: self._new_chat,
            c.OpenChat: self._open_chat,
            c.LeaveChat: self._leave_chat,
            c.EndChat: self._end_chat,
            c.RenameChat: self._rename_chat,
            c.DeleteChat: self._delete_chat,
            c.Say: self._say,
            c.WithdrawMessage: self._withdraw_message,
            c.EditMessage: self._edit_message,
            c.Regenerate: self._regenerate,
            c.Stop: self._stop,
            c.Answer: self._answer,
            c.Press: self._press,
            c.ChangeSettings: self._change_settings,
            c.Rate: self._rate,
            c.PostWindowMessage: self._post_window_message,
            c.CallReturned: self._call_returned,
        }

    async def handle(self, page: Page, command: c.Command) -> None:
        """Do what a page asks for, and tell it whether that was done."""
        try:
            if not isinstance(command, c.Hello | c.ListChats | c.NewChat):
                await self._check_owner(page, command.chat_id)
            await self._handlers[type(command)](page, command)
        except KaiwaError as error:
            code = error.code if isinstance(error, Refused) else "failed"
            page.send(Rejected(id=command.id, problem=Problem(code=code, message=str(error), hint=error.hint)))
        else:
            page.send(Accepted(id=command.id))

    async def _hello(self, page: Page, command: c.Hello) -> None:
        if command.version != PROTOCOL_VERSION:
            raise Refused(
                "version",
                f"this page speaks version {command.version} of the protocol, and the server {PROTOCOL_VERSION}",
                hint="load the page again",
            )
        page.language = command.language
        app, user = self._service.app, page.identity.user
        profiles, starters = await self._offers.for_page(page)
        page.send(
            Welcome(
                version=PROTOCOL_VERSION,
                app=AppInfo(
                    name=app.name,
                    description=in_language(app.description, page.language),
                    author=app.author,
                    can_upload=app.uploads.is_enabled,
                    max_upload_bytes=app.uploads.max_bytes,
                    max_upload_files=app.uploads.max_files,
                    accept=tuple(app.uploads.accept),
                    max_text_chars=c.MAX_TEXT_CHARS,
                ),
                user=None if user is None else user.record(),
                profiles=profiles,
                starters=starters,
                is_busy=self._service.is_busy,
            )
        )

    async def _list_chats(self, page: Page, command: c.ListChats) -> None:
        find = self._service.database.chats
        chats, following = await asyncio.to_thread(
            find, page.identity.owner, search=command.search, before=command.before
        )
        page.send(ChatList(id=command.id, chats=tuple(chats), next=following))

    async def _new_chat(self, page: Page, command: c.NewChat) -> None:
        found = await self._find(command.chat_id)
        if found is not None:
            await self._check_owner(page, command.chat_id)
            self._follow(page, found[0], 0)
            return
        now = time.time()
        chat = Chat(id=command.chat_id, title="", profile=command.profile, created_at=now, updated_at=now)
        self._service.log.append(chat.id, CreateChat(chat, page.identity.owner))
        await self._settle()
        self._follow(page, chat, 0)
        visitor = self._visitor(page, profile=command.profile)
        self._service.loop.submit(self._service.chats.begin(chat.id, visitor))

    async def _open_chat(self, page: Page, command: c.OpenChat) -> None:
        found = await self._find(command.chat_id)
        if found is None:
            raise _no_chat(command.chat_id)
        chat, _, num_events = found
        self._follow(page, chat, command.since if command.since <= num_events else 0)
        if chat.run_state == "queued" and self._service.chats.sessions.find(chat.id) is None:
            self._service.loop.submit(self._service.chats.wake(chat.id, self._visitor(page)))

    async def _leave_chat(self, page: Page, command: c.LeaveChat) -> None:
        self._pages.unfollow(page, command.chat_id)

    async def _end_chat(self, page: Page, command: c.EndChat) -> None:
        self._interrupt(command.chat_id)
        await self._in_app(self._service.chats.end(command.chat_id))

    async def _rename_chat(self, page: Page, command: c.RenameChat) -> None:
        self._service.log.append(command.chat_id, RenameChat(command.title.strip()))
        await self._settle()

    async def _delete_chat(self, page: Page, command: c.DeleteChat) -> None:
        service = self._service
        self._interrupt(command.chat_id)
        service.loop.submit(service.chats.sessions.drop(command.chat_id))
        service.log.append(command.chat_id, DeleteChat())
        await self._settle()
        self._owned.forget((command.chat_id, page.identity.owner))

    async def _say(self, page: Page, command: c.Say) -> None:
        if command.message_id in self._said:
            return
        _check_text(command.text, is_empty_allowed=bool(command.file_ids))
        files = await self._files(command.chat_id, command.file_ids)
        if await asyncio.to_thread(self._service.database.has_text, command.chat_id, command.message_id):
            return
        if command.message_id in self._said:
            return  # it came a second time while the disk was asked
        self._said.add(command.message_id)
        said = Message(
            id=command.message_id,
            role="user",
            author=page.identity.user.name if page.identity.user else "User",
            parts=(TextPart(text=command.text),),
            created_at=time.time(),
            state="queued",
            command=command.command,
            modes=command.modes,
            element_ids=tuple(file.file_id for file in files),
        )
        added = [ElementAdded(element=element_of(file, said.id)) for file in files]
        self._service.log.append(command.chat_id, *added, MessageAdded(message=said), KeepText(said.id, command.text))
        await self._settle()
        if not command.text.strip():
            await self._name_after_file(command.chat_id, files[0])
        self._service.loop.submit(self._service.chats.say(command.chat_id, self._visitor(page), said))

    async def _name_after_file(self, chat_id: str, file: KeepFile) -> None:
        """Give a chat that begins with files alone the name of the first, as others have that of their first words."""
        found = await self._find(chat_id)
        if found is not None and not found[0].title:
            self._service.log.append(chat_id, RenameChat(title_of(file.name)))

    async def _withdraw_message(self, page: Page, command: c.WithdrawMessage) -> None:
        async def withdraw() -> bool:
            active = self._service.chats.sessions.find(command.chat_id)
            return active is not None and active.runs.withdraw(command.message_id)

        if not await self._in_app(withdraw()):
            raise Refused("too_late", "this message waits no longer: it is being answered")

    async def _edit_message(self, page: Page, command: c.EditMessage) -> None:
        _check_text(command.text)
        await self._answer_again(page, command.chat_id, command.message_id, command.text)

    async def _regenerate(self, page: Page, command: c.Regenerate) -> None:
        await self._answer_again(page, command.chat_id, command.message_id, None)

    async def _answer_again(self, page: Page, chat_id: str, message_id: str, text: str | None) -> None:
        service = self._service
        self._interrupt(chat_id)
        said = await self._in_app(service.chats.edit(chat_id, self._visitor(page), message_id, text))
        if said is None:
            raise Refused("not_found", f"this chat has no message {message_id!r} of a person")
        said = said.model_copy(update={"state": "queued"})
        text_now = "".join(part.text for part in said.parts if isinstance(part, TextPart))
        service.log.append(chat_id, MessageAdded(message=said), KeepText(said.id, text_now))
        await self._settle()
        service.loop.post(service.chats.answer_again, chat_id, said)

    async def _stop(self, page: Page, command: c.Stop) -> None:
        active = self._interrupt(command.chat_id)
        if active is not None:
            self._service.loop.post(active.runs.stop)

    async def _answer(self, page: Page, command: c.Answer) -> None:
        if command.text is not None:
            _check_text(command.text)
        active = self._service.chats.sessions.find(command.chat_id)
        if active is None:
            raise Refused("too_late", "this question is not open any more", hint="say it as a message instead")
        files = await self._files(command.chat_id, command.file_ids or ())
        author = page.identity.user.name if page.identity.user else "User"
        answer_question(active.session, command, files, author=author)
        await self._settle()

    async def _press(self, page: Page, command: c.Press) -> None:
        data = await asyncio.to_thread(self._service.database.payload, command.chat_id, command.action_id)
        if data is None:
            raise Refused("not_found", f"this chat has no action {command.action_id!r}")
        action = Action.from_dict(data)
        if not self._service.calling.has("action_callback", action.name):
            raise Refused(
                "not_found",
                f"the app does nothing when {action.name!r} is pressed",
                hint=f"register a function with @action_callback({action.name!r})",
            )
        self._service.loop.submit(self._service.chats.press(command.chat_id, self._visitor(page), action))

    async def _change_settings(self, page: Page, command: c.ChangeSettings) -> None:
        change = self._service.chats.change_settings
        await self._in_app(change(command.chat_id, self._visitor(page), command.values, is_final=command.is_final))

    async def _rate(self, page: Page, command: c.Rate) -> None:
        feedback = Feedback(command.message_id, command.value, command.comment or None, command.chat_id)
        await self._in_app(self._service.chats.rate(command.chat_id, self._visitor(page), feedback))

    async def _post_window_message(self, page: Page, command: c.PostWindowMessage) -> None:
        hear = self._service.chats.hear_window
        await self._in_app(hear(command.chat_id, self._visitor(page), command.data))

    async def _call_returned(self, page: Page, command: c.CallReturned) -> None:
        active = self._service.chats.sessions.find(command.chat_id)
        waiting = None if active is None else active.session.calls.pop(command.call_id, None)
        if waiting is None:
            raise Refused("too_late", "nobody waits for this call any more")
        if command.error is None:
            waiting.set_result(command.result)
        else:
            waiting.set_exception(KaiwaError(f"the page's function failed: {command.error}"))

    def _follow(self, page: Page, chat: Chat, since: int) -> None:
        page.send(Opened(chat=chat, since=since))
        self._pages.follow(page, chat.id, since)

    def _interrupt(self, chat_id: str) -> Any:
        """Let a run end at its next word, also where the app's loop is blocked; the chat, where it is in use."""
        active = self._service.chats.sessions.find(chat_id)
        if active is not None:
            active.runs.interrupt()
        return active

    def _visitor(self, page: Page, *, profile: str | None = None) -> Visitor:
        return Visitor(page.identity.user, page.language, profile)

    async def _check_owner(self, page: Page, chat_id: str) -> None:
        """Raise `Refused` for a chat of somebody else, in the same words as for one that is not there."""
        if (chat_id, page.identity.owner) in self._owned:
            return
        found = await self._find(chat_id)
        if found is None or found[1] != page.identity.owner:
            raise _no_chat(chat_id)
        self._owned.add((chat_id, page.identity.owner))

    async def _find(self, chat_id: str) -> tuple[Chat, str, int] | None:
        return await asyncio.to_thread(self._service.database.chat, chat_id)

    async def _files(self, chat_id: str, file_ids: tuple[str, ...]) -> list[KeepFile]:
        """Files that were uploaded to this chat. Raises `Refused` for one that was not."""
        files = []
        for file_id in file_ids:
            found = await asyncio.to_thread(self._service.database.file, file_id)
            if found is None or found[0] != chat_id:
                raise Refused("not_found", f"the file {file_id!r} was not uploaded to this chat")
            files.append(found[1])
        return files

    async def _settle(self) -> None:
        """Wait until what was appended is on disk."""
        await asyncio.wrap_future(self._service.log.settled())

    async def _in_app(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of work in the app's loop. Raises `Refused` where the app's own code blocks that."""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._service.loop.submit(work)), MAX_WAIT_S)
        except TimeoutError:
            raise Refused("busy", "the app is busy with something that holds up everybody", hint="try again") from None


def _no_chat(chat_id: str) -> Refused:
    return Refused("not_found", f"there is no chat {chat_id!r}")


def _check_text(text: str, *, is_empty_allowed: bool = False) -> None:
    if not text.strip() and not is_empty_allowed:
        raise Refused("invalid", "the message is empty")
    if len(text) > c.MAX_TEXT_CHARS:
        raise Refused(
            "too_large",
            f"the message has {len(text):,} characters, and {c.MAX_TEXT_CHARS:,} are the most",
            hint="send it as a file",
        )
