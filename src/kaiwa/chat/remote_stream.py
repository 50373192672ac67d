"""An answer that comes from elsewhere, as its reader holds it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Self

from kaiwa.chat.background_loop import BackgroundLoop
from kaiwa.events import Event

Item = Event | BaseException | None
"""What arrives: an event, the error that ends the answer, or None after the last event."""
Work = Callable[[Callable[[Item], None]], Coroutine[Any, Any, None]]
"""Reads an answer and hands over its items; when it is cancelled, it still hands over how far the answer came."""


class RemoteStream(Iterator[Event]):
    """The events of one answer; the last is `Finished`. They arrive whether they are read or not."""

    def __init__(self, loop: BackgroundLoop, work: Work) -> None:
        self._arrived: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._is_over = False
        self._future: Future[None] = loop.submit(work(self._arrived.put))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if self._is_over:
            raise StopIteration
        item = self._arrived.get()
        if item is None or isinstance(item, BaseException):
            self._is_over = True
            if item is None:
                raise StopIteration
            raise item
        return item

    def cancel(self) -> None:
        """End the answer and close its connection, from any thread.

        Its reader still gets the text so far, and `Finished` with the reason "cancelled".
        """
        self._future.cancel()

    def close(self) -> None:
        """End the answer and close its connection; its reader gets nothing more."""
        self._is_over = True
        self._future.cancel()

    def __del__(self) -> None:
        self._future.cancel()  # a reader that has left its loop wants no more


async def across(loop: BackgroundLoop, work: Work) -> AsyncGenerator[Event]:
    """The same for a reader in another event loop, which never waits. Closing it closes the connection."""
    here = asyncio.get_running_loop()
    arrived: asyncio.Queue[Item] = asyncio.Queue()

    def post(item: Item) -> None:
        if not here.is_closed():
            here.call_soon_threadsafe(arrived.put_nowait, item)

    future = loop.submit(work(post))
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        future.cancel()
