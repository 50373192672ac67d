"""A data layer of the app's own: told of everything that happens in chats, after it is in the log.

Kaiwa keeps chats by itself; this is for who wants them elsewhere as well. Names are Chainlit's.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Sequence
from typing import Any

from kaiwa.apps.content.feedback import Feedback
from kaiwa.apps.protocol import events as e
from kaiwa.apps.storage.log import Written
from kaiwa.apps.thread import message_dict, step_dict
from kaiwa.apps.work.calling import Calling
from kaiwa.apps.work.chat_state import ChatState

METHODS = (
    "create_step",
    "update_step",
    "delete_step",
    "create_element",
    "delete_element",
    "upsert_feedback",
    "update_thread",
    "delete_thread",
)
"""What a data layer may have; what it lacks is not called. Each may be async or not."""

_logger = logging.getLogger("kaiwa.apps")


class Mirror:
    """Tells a data layer, in order and in the app's loop. An error there goes to the log and holds nothing up."""

    def __init__(self, calling: Calling, layer: Any) -> None:
        self._calling = calling
        self._layer = layer
        self._chats: dict[str, ChatState] = {}
        self._turn = asyncio.Lock()

    def tell(self, written: Sequence[Written]) -> None:
        """A listener of the log."""
        self._calling.loop.submit(self._tell(written))

    async def _tell(self, written: Sequence[Written]) -> None:
        async with self._turn:
            for one in written:
                if one.is_deleted:
                    self._chats.pop(one.chat_id, None)
                    await self._call("delete_thread", one.chat_id)
                    continue
                state = self._chats.setdefault(one.chat_id, ChatState())
                for body in one.bodies:
                    await self._happened(one.chat_id, state, e.EVENT.validate_json(body))
                if one.chat is not None:
                    await self._call("update_thread", one.chat_id, name=one.chat.title, user_id=one.owner)
                    if one.chat.run_state == "idle":
                        self._chats.pop(one.chat_id, None)  # what comes next needs nothing of it

    async def _happened(self, chat_id: str, state: ChatState, event: e.Event) -> None:
        try:
            state.apply(event)
        except KeyError:
            return  # it is about something from before this server
        match event:
            case e.MessageAdded(message=message) if message.state != "streaming":
                await self._call("create_step", {**message_dict(message), "threadId": chat_id})
            case e.MessageFinished(message_id=message_id):
                await self._call("create_step", {**message_dict(state.messages[message_id]), "threadId": chat_id})
            case e.MessageUpdated(message=message):
                await self._call("update_step", {**message_dict(message), "threadId": chat_id})
            case e.MessageRemoved(message_id=step_id) | e.StepRemoved(step_id=step_id):
                await self._call("delete_step", step_id)
            case e.StepAdded(step=step):
                await self._call("create_step", {**step_dict(step), "threadId": chat_id})
            case e.StepUpdated(step=step):
                await self._call("update_step", {**step_dict(step), "threadId": chat_id})
            case e.ElementAdded(element=element):
                await self._call("create_element", {**element.model_dump(), "threadId": chat_id})
            case e.ElementRemoved(element_id=element_id):
                await self._call("delete_element", element_id)
            case e.FeedbackGiven():
                feedback = Feedback(event.message_id, event.value, event.comment or None, chat_id)
                await self._call("upsert_feedback", feedback)

    async def _call(self, method: str, *arguments: Any, **keywords: Any) -> None:
        function = getattr(self._layer, method, None)
        if function is None:
            return
        try:
            result = function(*arguments, **keywords)
            if inspect.isawaitable(result):
                await result
        except Exception:  # the app's own storage, which must not hold up the chat
            _logger.exception("the data layer's %s failed", method)
