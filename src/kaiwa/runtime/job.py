"""A job: what the scheduler knows of a request. Its states, and how they follow each other."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    """Where a request is on its way."""

    WAITING = "waiting for its turn"
    READING = "reading the prompt"
    WRITING = "writing the answer"
    FINISHED = "finished"


NEXT_STATES = {
    State.WAITING: {State.READING, State.FINISHED},
    State.READING: {State.WRITING, State.WAITING, State.FINISHED},
    # Back to waiting where memory got tight: what was computed is forgotten, and will be read again.
    # Back to reading where a step failed and the engine could not go back by just this step.
    State.WRITING: {State.WRITING, State.WAITING, State.READING, State.FINISHED},
    State.FINISHED: set(),
}


@dataclass(slots=True, eq=False)
class Job:
    """Tokens that are known, the first of which are computed. Only the scheduler changes it."""

    num_tokens: int
    client: str = ""
    """Who asks. The scheduler is fair between clients, and within one first come is first served."""
    num_computed: int = 0
    number: int = -1
    """Where it stands in the order of asking."""
    state: State = State.WAITING

    @property
    def is_queued(self) -> bool:
        """Whether a scheduler has taken it."""
        return self.number >= 0

    @property
    def num_unread(self) -> int:
        """Known tokens that are not computed yet: a part of the prompt, or the token that was sampled last."""
        return self.num_tokens - self.num_computed

    def become(self, state: State) -> None:
        """The only place where a state changes."""
        if state not in NEXT_STATES[self.state]:
            raise RuntimeError(f"a request that is {self.state.value} cannot be {state.value} next")
        self.state = state
