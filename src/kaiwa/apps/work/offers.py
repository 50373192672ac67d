"""What an app offers before a chat begins: its profiles and first messages, as its hooks say for each person."""

from __future__ import annotations

import asyncio
import logging

from kaiwa.apps.protocol.frames import ProfilesChanged
from kaiwa.apps.protocol.records import Profile, StarterCategory
from kaiwa.apps.work.calling import Calling
from kaiwa.apps.work.page import Page

MAX_WAIT_S = 0.5
"""How long a page waits for them before it is shown without."""

Offered = tuple[tuple[Profile, ...], tuple[StarterCategory, ...]]
_logger = logging.getLogger("kaiwa.apps")


class Offers:
    """Asks the app."""

    def __init__(self, calling: Calling) -> None:
        self._calling = calling
        self._late: set[asyncio.Task[None]] = set()

    async def for_page(self, page: Page) -> Offered:
        """Profiles and starters. Where the app takes long to say, none now, and the page hears of them later."""
        hooks = self._calling.app.hooks
        if not hooks.has("set_chat_profiles", "set_starters", "set_starter_categories"):
            return (), ()
        asking = asyncio.ensure_future(asyncio.wrap_future(self._calling.loop.submit(self._ask(page))))
        try:
            return await asyncio.wait_for(asyncio.shield(asking), MAX_WAIT_S)
        except TimeoutError:
            task = asyncio.create_task(self._tell_later(page, asking))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return (), ()

    async def _tell_later(self, page: Page, asking: asyncio.Future[Offered]) -> None:
        profiles, starters = await asking
        page.send(ProfilesChanged(profiles=profiles, starters=starters))

    async def _ask(self, page: Page) -> Offered:
        user, call = page.identity.user, self._calling.call
        try:
            profiles = await call("set_chat_profiles", user, page.language) or ()
            starters = await call("set_starters", user, page.language) or ()
            categories = await call("set_starter_categories", user, page.language, None) or ()
        except Exception:  # an app's own mistake: the page comes without them
            _logger.exception("the app could not say what it offers")
            return (), ()
        loose = tuple(starter.record() for starter in starters)
        grouped = [category.record() for category in categories]
        if loose:
            grouped.insert(0, StarterCategory(label="", starters=loose))
        return tuple(profile.record() for profile in profiles), tuple(grouped)
