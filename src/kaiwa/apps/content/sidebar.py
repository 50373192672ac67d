"""ElementSidebar: elements beside the chat."""

from __future__ import annotations

from collections.abc import Sequence

from kaiwa.apps.content.elements import Element
from kaiwa.apps.context import current
from kaiwa.apps.protocol.events import SidebarChanged
from kaiwa.apps.protocol.records import Sidebar

_TITLE = "kaiwa.sidebar.title"
_SHOWN = "kaiwa.sidebar.shown"


class ElementSidebar:
    """The sidebar of the chat that the calling code belongs to."""

    @staticmethod
    async def set_title(title: str) -> None:
        """Write this above it."""
        session = current().session
        session.variables[_TITLE] = title
        shown: Sidebar | None = session.variables.get(_SHOWN)
        if shown is not None:
            session.variables[_SHOWN] = shown = shown.model_copy(update={"title": title})
            current().emit(SidebarChanged(sidebar=shown))

    @staticmethod
    async def set_elements(elements: Sequence[Element], key: str | None = None) -> None:
        """Show these and open it; none closes it. With the `key` that it has already, nothing changes."""
        session = current().session
        shown: Sidebar | None = session.variables.get(_SHOWN)
        if key is not None and shown is not None and shown.key == key:
            return
        for element in elements:
            await element.send()
        ids = tuple(element.id for element in elements)
        sidebar = Sidebar(title=session.variables.get(_TITLE, ""), element_ids=ids, key=key) if ids else None
        session.variables[_SHOWN] = sidebar
        current().emit(SidebarChanged(sidebar=sidebar))
