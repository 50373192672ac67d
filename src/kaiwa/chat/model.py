"""The ChatModel protocol: what a terminal, an app or a server needs of a model, wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from kaiwa.events import Event
from kaiwa.messages import Conversation
from kaiwa.sampling import Sampling


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a person may want to know of a model. Memory in bytes; 0 where it is not known."""

    name: str
    family: str
    number_format: str
    engine: str
    num_parameters: int
    context_length: int
    weights_bytes: int
    cache_bytes: int
    """The key-value cache when the context is full."""


class Events(Protocol):
    """Events that arrive one by one. Closing them stops the work."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def __anext__(self) -> Event: ...

    async def aclose(self) -> None:
        """Want no more."""
        ...


class ChatModel(Protocol):
    """A model that answers conversations."""

    @property
    def card(self) -> ModelCard: ...

    @property
    def sampling(self) -> Sampling:
        """The options that hold where a call gives none."""
        ...

    def count_tokens(self, messages: Conversation) -> int:
        """How many tokens the conversation takes as a prompt."""
        ...

    def stream(self, messages: Conversation, **options: Any) -> Iterator[Event]:
        """The events of the answer; the last is `Finished`. Closing the iterator stops the work.

        Raises `InvalidOption`, `InvalidMessages`, `TemplateError` or `ContextOverflow` before the first event.
        """
        ...

    def astream(self, messages: Conversation, **options: Any) -> Events:
        """As `stream`, without ever blocking the event loop; what it raises may come with the first event."""
        ...
