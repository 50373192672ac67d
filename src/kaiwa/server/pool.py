"""What the server needs of the models behind it; `runtime.pool.ModelPool` has it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, Protocol

from kaiwa.chat.model import ModelCard
from kaiwa.events import Event
from kaiwa.messages import Conversation


class ServedModel(Protocol):
    """A model that is ready to answer."""

    @property
    def card(self) -> ModelCard: ...

    def astream(self, messages: Conversation, **options: Any) -> AsyncGenerator[Event]: ...

    def count_tokens(self, messages: Conversation) -> int: ...

    def tokenize(self, text: str) -> list[int]: ...

    def detokenize(self, token_ids: Sequence[int]) -> str: ...


class ModelStatus(Protocol):
    """One model that may be asked for. There is a `card` while it is in memory."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> Enum: ...

    @property
    def num_bytes(self) -> int | None: ...

    @property
    def card(self) -> ModelCard | None: ...


class Pool(Protocol):
    """The models of a server."""

    def models(self) -> Sequence[ModelStatus]:
        """All that may be asked for by name."""
        ...

    def status(self, name: str) -> ModelStatus:
        """One of them. Raises `ModelNotFound`."""
        ...

    def use(self, name: str) -> AbstractAsyncContextManager[ServedModel]:
        """The model of that name, loaded first where it is not, and held in memory until the block ends.

        Raises `ModelNotFound`, or what loading raises.
        """
        ...

    async def load(self, name: str) -> None:
        """Load a model before somebody uses it. Raises what `use` raises."""
        ...

    def unload(self, name: str) -> None:
        """Unload a model as soon as nobody uses it. Raises `ModelNotFound`."""
        ...
