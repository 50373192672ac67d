"""Several answers at once, as one stream of numbered events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from kaiwa.chat.model import Events
from kaiwa.events import Event

Numbered = tuple[int, Event]


async def merge(streams: Sequence[Events]) -> AsyncGenerator[Numbered]:
    """The events of all streams as they come, each with its stream's index. Closing it closes them all."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as events:
            async for event in events:
                yield 0, event
        return
    arrived: asyncio.Queue[Numbered | BaseException | None] = asyncio.Queue()
    readers = [asyncio.create_task(_read(index, stream, arrived)) for index, stream in enumerate(streams)]
    num_open = len(streams)
    try:
        while num_open:
            item = await arrived.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                num_open -= 1
            else:
                yield item
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(index: int, stream: Events, arrived: asyncio.Queue[Numbered | BaseException | None]) -> None:
    try:
        async with aclosing(stream) as events:
            async for event in events:
                arrived.put_nowait((index, event))
    except Exception as error:  # noqa: BLE001  (the reader of the merged stream raises it)
        arrived.put_nowait(error)
    else:
        arrived.put_nowait(None)
