"""Calling an app's hooks: in a chat or outside of one, with as many arguments as the function takes."""

from __future__ import annotations

import logging
from typing import Any

from kaiwa.apps.context import CURRENT, Context
from kaiwa.apps.definition import Definition
from kaiwa.apps.hooks import BY_NAME, num_arguments
from kaiwa.apps.work.handler_loop import HandlerLoop

_logger = logging.getLogger("kaiwa.apps")


class Calling:
    """The app, which may be replaced by a newer one while chats go on, and the loop that its functions run in."""

    def __init__(self, app: Definition, loop: HandlerLoop) -> None:
        self.app = app
        self.loop = loop

    def has(self, hook_name: str, name: str = "") -> bool:
        """Whether the app has a function for this hook."""
        return self.app.hooks.find(hook_name, name) is not None

    async def call(self, hook_name: str, *arguments: Any, name: str = "", context: Context | None = None) -> Any:
        """Call the hook's function, in this context; what it returns, or None where there is none.

        Only in the app's loop. Raises what the function raises.
        """
        function = self.app.hooks.find(hook_name, name)
        if function is None:
            return None
        if context is not None:
            CURRENT.set(context)
        return await self.loop.call(function, *arguments[: num_arguments(BY_NAME[hook_name], function)])

    async def tell(self, hook_name: str, *arguments: Any, context: Context | None = None) -> None:
        """As `call`, where nobody waits for what comes of it: an error goes to the log."""
        try:
            await self.call(hook_name, *arguments, context=context)
        except Exception:  # an app's own mistake, which must not end what tells it
            _logger.exception("%s failed", hook_name)
