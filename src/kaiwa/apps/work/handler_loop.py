"""The loop in which an app's functions run: a thread of its own, so that no code of an app ever holds up a page."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

MAX_THREADS = 256
"""How many functions without `async` may run at once."""
PATIENCE_S = 3.0
"""How long an app may take to end."""


class HandlerLoop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.num_at_work = 0
        """How many of the app's functions are running or waiting; the watchdog looks while there are any."""
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="kaiwa-handler")
        self.loop.set_default_executor(self._executor)
        self.thread = threading.Thread(target=self._run, name="kaiwa-app", daemon=True)
        self.thread.start()

    def post(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function there, soon. What arrives after `close` is dropped: nobody is left to see it."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of an app, in this loop if it is async and in a thread if not; what it returns."""
        self.num_at_work += 1
        try:
            if inspect.iscoroutinefunction(function):
                return await function(*arguments)
            result = await asyncio.to_thread(function, *arguments)
            return await result if inspect.isawaitable(result) else result
        finally:
            self.num_at_work -= 1

    def close(self) -> None:
        """Cancel what runs, and end. Functions in threads end at their next word."""
        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._end()))
        self.thread.join(PATIENCE_S)
        self._executor.shutdown(wait=False, cancel_futures=True)
        if not self.thread.is_alive():  # what blocks it still dies with the process
            self.loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        self.loop.stop()
