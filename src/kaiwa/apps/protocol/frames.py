"""Frames: what the server sends to a page. `events` carries a chat's log; everything else is of the moment."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kaiwa.apps.protocol.events import Event
from kaiwa.apps.protocol.records import Chat, Problem, Profile, Record, StarterCategory, User

PROTOCOL_VERSION = 1


class AppInfo(Record):
    """What a page says of the app, and what it may send."""

    name: str
    description: str = ""
    """Markdown, shown where a chat is still empty."""
    author: str
    """Who answers where a message names nobody."""
    can_upload: bool = True
    max_upload_bytes: int
    max_upload_files: int
    accept: tuple[str, ...] = ()
    max_text_chars: int


class Welcome(Record):
    """The answer to `hello`. A page of another `version` loads itself again."""

    type: Literal["welcome"] = "welcome"
    version: int
    app: AppInfo
    user: User | None
    profiles: tuple[Profile, ...]
    starters: tuple[StarterCategory, ...]
    is_busy: bool = False


class ProfilesChanged(Record):
    """Profiles and starters, where they are ready after `welcome`, or have changed."""

    type: Literal["profiles_changed"] = "profiles_changed"
    profiles: tuple[Profile, ...]
    starters: tuple[StarterCategory, ...]


class Accepted(Record):
    """The command with this `id` is done, or will be: what comes of it arrives as events."""

    type: Literal["accepted"] = "accepted"
    id: str


class Rejected(Record):
    """The command with this `id` changed nothing. `id` is None where it could not be read."""

    type: Literal["rejected"] = "rejected"
    id: str | None
    problem: Problem


class ChatList(Record):
    """A page of the list of chats, the latest first; `next` is None on the last page."""

    type: Literal["chat_list"] = "chat_list"
    id: str
    chats: tuple[Chat, ...]
    next: str | None


class ChatChanged(Record):
    """A chat of the list as it is now, or a new one."""

    type: Literal["chat_changed"] = "chat_changed"
    chat: Chat


class ChatRemoved(Record):
    """A chat that is no longer in the list."""

    type: Literal["chat_removed"] = "chat_removed"
    chat_id: str


class Opened(Record):
    """The chat, followed from now on; its events after `since` come next.

    Where `since` is 0 although the page asked for more, the log begins anew: the page forgets what it drew.
    """

    type: Literal["opened"] = "opened"
    chat: Chat
    since: int


class Events(Record):
    """What happened in a chat. `offset` is that of the last event: what a page asks to go on after.

    Neighbouring pieces of text may arrive as one, so that there may be fewer events than offsets.
    """

    type: Literal["events"] = "events"
    chat_id: str
    offset: int
    events: tuple[Event, ...]


class QueuePlace(Record):
    """Where the answer of this chat stands in the model's queue: 1 comes next, 0 waits no longer."""

    type: Literal["queue_place"] = "queue_place"
    chat_id: str
    place: int


class PromptProgress(Record):
    """How much of the prompt the model has read before it answers, in tokens; `cached_tokens` it knew already."""

    type: Literal["prompt_progress"] = "prompt_progress"
    chat_id: str
    read_tokens: int
    prompt_tokens: int
    cached_tokens: int


class Busy(Record):
    """Whether the app's own code holds up everybody for the moment; what is said now is kept and answered later."""

    type: Literal["busy"] = "busy"
    is_busy: bool


class Toast(Record):
    """A short word that goes by itself."""

    type: Literal["toast"] = "toast"
    chat_id: str | None
    kind: Literal["info", "success", "warning", "error"] = "info"
    text: str


class WindowMessage(Record):
    """For the page around this one."""

    type: Literal["window_message"] = "window_message"
    chat_id: str
    data: Any


class CallFunction(Record):
    """Call a function of the page around this one; answered by `call_returned`."""

    type: Literal["call_function"] = "call_function"
    chat_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]


class Reloaded(Record):
    """The app's code was read again; the chats go on. `problem` is why it could not be."""

    type: Literal["reloaded"] = "reloaded"
    problem: Problem | None = None


class LoggedOut(Record):
    """The person's login has ended: the page shows the login again."""

    type: Literal["logged_out"] = "logged_out"


Frame = Annotated[
    Welcome
    | ProfilesChanged
    | Accepted
    | Rejected
    | ChatList
    | ChatChanged
    | ChatRemoved
    | Opened
    | Events
    | QueuePlace
    | PromptProgress
    | Busy
    | Toast
    | WindowMessage
    | CallFunction
    | Reloaded
    | LoggedOut,
    Field(discriminator="type"),
]
