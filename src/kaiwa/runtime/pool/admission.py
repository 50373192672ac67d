"""What a load and its pool say to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from kaiwa.chat.embedding import Embedding
from kaiwa.chat.model import ChatModel, Events
from kaiwa.engines.engine import Pooling
from kaiwa.events import Event, Progress, Reply
from kaiwa.messages import Conversation


class PooledModel(ChatModel, Protocol):
    """A model that can be unloaded: a `kaiwa.LLM`, here or in another process."""

    @property
    def chat_template(self) -> str | None:
        """The source of the model's chat template, or None where it has none."""
        ...

    def chat(self, messages: Conversation, **options: Any) -> Reply:
        """The whole answer. Raises what `stream` raises."""
        ...

    async def achat(self, messages: Conversation, **options: Any) -> Reply:
        """As `chat`, without blocking the event loop."""
        ...

    def stream_text(self, prompt: str | Sequence[int], **options: Any) -> Iterator[Event]:
        """The events of what follows after a text or token ids, without a chat template."""
        ...

    def astream_text(self, prompt: str | Sequence[int], **options: Any) -> Events:
        """As `stream_text`, without blocking the event loop."""
        ...

    def embed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """A vector of length 1 for each text, or for its token ids."""
        ...

    async def aembed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """As `embed`, without blocking the event loop."""
        ...

    def count_tokens(
        self,
        messages: Conversation,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_variables: Mapping[str, Any] | None = None,
    ) -> int:
        """How many tokens the conversation takes as a prompt."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """The token ids of ordinary text."""
        ...

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, special tokens included."""
        ...

    def close(self) -> None:
        """Give its memory back. What is being answered ends with an error."""
        ...


class Admission(Protocol):
    """A load's place in a pool. `admit`, `report` and `check` raise `Cancelled` where nobody wants it any more."""

    @property
    def most_bytes(self) -> int | None:
        """What all models of the pool may take together; None where there is no limit."""
        ...

    @property
    def share_bytes(self) -> int | None:
        """What each of them may take if all take the same."""
        ...

    def admit(self, num_bytes: int) -> None:
        """To be called once, before memory is taken. Waits until others have made room.

        Raises `OutOfMemory` with the arithmetic where there will be none.
        """
        ...

    def report(self, progress: Progress) -> None:
        """Tell everybody who waits how far the load has come."""
        ...

    def check(self) -> None:
        """To be called now and then where nothing else is."""
        ...

    def lost(self, error: Exception) -> None:
        """A model that was loaded cannot be used any more: the next who asks for it gets a new one."""
        ...


Load = Callable[[Admission], PooledModel]
"""How a model comes into a pool. Called in a thread of its own; raises what those shall see who wait."""


def ready(make: Callable[[], PooledModel]) -> Load:
    """A load of a model that needs no memory worth counting, such as one with a scripted engine."""

    def load(admission: Admission) -> PooledModel:
        admission.admit(0)
        return make()

    return load


class Alone:
    """The admission of a model that shares its memory with no other."""

    most_bytes = share_bytes = None

    def __init__(self, on_progress: Callable[[Progress], None] | None = None) -> None:
        self._on_progress = on_progress

    def admit(self, num_bytes: int) -> None:
        """There is room."""

    def report(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)

    def check(self) -> None:
        """Somebody wants it."""

    def lost(self, error: Exception) -> None:
        """Whoever calls sees it."""
