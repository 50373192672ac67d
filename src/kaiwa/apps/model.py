"""Model: a language model that an app declares at its top, and that is loaded once, when it is first needed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from kaiwa.apps.content.loading_step import LoadingStep
from kaiwa.apps.context import CURRENT
from kaiwa.apps.definition import default_app
from kaiwa.chat.reply import collect
from kaiwa.errors import NoChat
from kaiwa.events import Event, Reply
from kaiwa.messages import Conversation
from kaiwa.runtime.pool.shelf import State

if TYPE_CHECKING:  # nothing is loaded before somebody needs it
    from kaiwa.runtime.pool.admission import Load, PooledModel
    from kaiwa.runtime.pool.model_pool import ModelPool


class Model:
    """A model by name or path, shared by all chats of the app.

        model = kw.Model("smollm2:135m")

        @kw.on_message
        async def answer(message):
            await kw.reply(model)

    Nothing happens until somebody needs it, or with `preload` until the app starts. Chats that wait for it see a step
    with its progress. `options` are those of `kaiwa.LLM`; `load` is for who has another way to load a model.
    """

    def __init__(self, name: str, *, preload: bool = False, load: Load | None = None, **options: Any) -> None:
        self.name = name
        self.preload = preload
        self.own_load = load
        self.options = options
        self._pool: ModelPool | None = None
        default_app().models.append(self)

    @property
    def key(self) -> str:
        """What tells it from others of a pool: its name, and the options where there are any."""
        given = ", ".join(f"{name}={value!r}" for name, value in sorted(self.options.items()))
        return f"{self.name} ({given})" if given else self.name

    def bind(self, pool: ModelPool) -> None:
        """Load it into this pool, when somebody needs it."""
        self._pool = pool

    async def load(self) -> None:
        """Have it in memory from now on. Raises what `kaiwa.LLM` raises."""
        async with self.use():
            pass

    @asynccontextmanager
    async def use(self) -> AsyncIterator[PooledModel]:
        """Hold it in memory for the length of an `async with`. Raises what `kaiwa.LLM` raises."""
        pool = self._bound_pool()
        is_shown = CURRENT.get(None) is not None and pool.status(self.key).state is not State.READY
        with LoadingStep(self.name, is_shown=is_shown) as step:
            holding: AbstractAsyncContextManager[PooledModel] = pool.use(self.key, on_progress=step.show)
            model = await holding.__aenter__()
        try:
            yield model
        finally:
            await holding.__aexit__(None, None, None)

    async def stream(self, messages: Conversation, **options: Any) -> AsyncGenerator[Event]:
        """The events of the answer, as they come; the last is `Finished`. Leaving the loop stops the work.

        Raises what `kaiwa.LLM` and its `stream` raise.
        """
        async with self.use() as model, aclosing(model.astream(messages, **options)) as events:
            async for event in events:
                yield event

    astream = stream
    """The name that it has where both colours exist."""

    async def chat(self, messages: Conversation, **options: Any) -> Reply:
        """The whole answer to a conversation. Raises what `stream` raises."""
        return collect([event async for event in self.stream(messages, **options)])

    def __repr__(self) -> str:
        return f"<Model {self.key}>"

    def _bound_pool(self) -> ModelPool:
        context = CURRENT.get(None)
        if context is not None:
            return context.session.adopt(self)
        if self._pool is None:
            raise NoChat(
                f"the model {self.name} belongs to an app, which is not running",
                hint="start it with `kaiwa run`, or use kaiwa.LLM where there is no app",
            )
        return self._pool
