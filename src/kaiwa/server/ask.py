"""What every API asks of a model in the end, whatever words it came in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiwa.events import Event
from kaiwa.messages import Conversation
from kaiwa.sampling import MAX_SEED
from kaiwa.server.pool import ServedModel


@dataclass(frozen=True, slots=True)
class Ask:
    """A conversation to answer `num_choices` times, with keyword arguments for `astream`."""

    model: str
    messages: Conversation
    options: Mapping[str, Any] = field(default_factory=dict)
    num_choices: int = 1
    scope: str = ""
    """Whose conversations may share what is computed, among those of one API key."""

    def start(self, model: ServedModel, choice: int) -> AsyncGenerator[Event]:
        """The events of one of the answers. With a seed each of them has the next one."""
        options = dict(self.options)
        if options.get("seed") is not None:
            options["seed"] = (options["seed"] + choice) & MAX_SEED
        return model.astream(self.messages, **options)
