"""Pieces of sequences, each of a prompt or of an answer: that alone decides in which roundings a token is computed.

A prompt's tokens are those that `configure` was told of, wherever a step's slices are cut and whatever they are mixed
with. Where the processor has tiles of 16-bit numbers they go through these. An answer's tokens never do: one, or a few
that were guessed, wait for memory and not for arithmetic, and must come out the same with guesses and without.
"""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

from kaiwa.engines.native import _native
from kaiwa.engines.native.kv_cache import Sequence
from kaiwa.engines.native.states import StatePlan


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring tokens of one sequence, from position `begin` on."""

    sequence: Sequence
    begin: int
    token_ids: Tokens[int]
    states: StatePlan = field(default_factory=StatePlan)

    @property
    def is_prompt(self) -> bool:
        """Whether its last token is of the prompt, and with it all others."""
        return self.begin + len(self.token_ids) <= self.sequence.num_prompt_tokens

    @property
    def native(self) -> _native.SliceTuple:
        """What the program is told of it."""
        return (
            self.begin,
            len(self.token_ids),
            self.sequence.blocks,
            self.is_prompt,
            self.sequence.is_long,
            self.states.state,
            self.states.checkpoint,
            self.states.checkpoint_tokens,
        )

    def by_role(self) -> tuple[Piece, ...]:
        """The part that is of the prompt, and the part that is of the answer, as far as there are such."""
        num_prompt = self.sequence.num_prompt_tokens - self.begin
        if not 0 < num_prompt < len(self.token_ids):
            return (self,)
        before, after = self.states.cut(num_prompt)
        return (
            Piece(self.sequence, self.begin, self.token_ids[:num_prompt], before),
            Piece(self.sequence, self.begin + num_prompt, self.token_ids[num_prompt:], after),
        )
