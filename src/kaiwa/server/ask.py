"""What every API asks of a model in the end, whatever words it came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kaiwa.chat.model import Events
from kaiwa.messages import Conversation
from kaiwa.runtime.pool.admission import PooledModel
from kaiwa.sampling import MAX_SEED


class Ask(Protocol):
    """Something that a model answers, once or several times."""

    @property
    def model(self) -> str: ...

    @property
    def num_choices(self) -> int: ...

    def start(self, model: PooledModel, choice: int, client: str) -> Events:
        """The events of one of the answers. `client` stands for the key that the request came with."""
        ...


@dataclass(frozen=True, slots=True)
class ChatAsk:
    """A conversation to answer, with keyword arguments for `astream`."""

    model: str
    messages: Conversation
    options: Mapping[str, Any] = field(default_factory=dict)
    num_choices: int = 1
    scope: str = ""
    """Whose conversations may share what is computed of them, among those of one key."""

    def start(self, model: PooledModel, choice: int, client: str) -> Events:
        return model.astream(self.messages, **_with_seed(self.options, choice), client=_scoped(client, self.scope))


@dataclass(frozen=True, slots=True)
class TextAsk:
    """Prompts to go on with, each `num_each` times, with keyword arguments for `astream_text`."""

    model: str
    prompts: Sequence[str | Sequence[int]]
    options: Mapping[str, Any] = field(default_factory=dict)
    num_each: int = 1
    scope: str = ""

    @property
    def num_choices(self) -> int:
        return len(self.prompts) * self.num_each

    def start(self, model: PooledModel, choice: int, client: str) -> Events:
        prompt = self.prompts[choice // self.num_each]
        options = _with_seed(self.options, choice % self.num_each)
        return model.astream_text(prompt, **options, client=_scoped(client, self.scope))


def _with_seed(options: Mapping[str, Any], choice: int) -> Mapping[str, Any]:
    """With a seed each choice has the next one, so that they differ and come out alike every time."""
    seed = options.get("seed")
    return options if seed is None else {**options, "seed": (seed + choice) & MAX_SEED}


def _scoped(client: str, scope: str) -> str:
    return f"{client}/{scope}" if scope else client
