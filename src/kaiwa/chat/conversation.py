"""A conversation: a system prompt and turns.

Every change gives a new `Chat` and leaves the old one as it was, so that undoing is keeping the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from kaiwa.errors import InvalidMessages
from kaiwa.events import FinishReason
from kaiwa.messages import Message, normalize

FINISH_REASONS: tuple[str, ...] = get_args(FinishReason)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer. `finish_reason` is None as long as there is no answer."""

    question: str
    answer: str = ""
    finish_reason: FinishReason | None = None

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer, whole or not."""
        return self.finish_reason is not None

    @property
    def is_partial(self) -> bool:
        """Whether the answer was stopped or cut off before the model ended it."""
        return self.finish_reason in ("cancelled", "length")


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. Only the last turn may be without an answer."""

    system: str = ""
    turns: tuple[Turn, ...] = ()

    def asked(self, question: str) -> Chat:
        """With one more question; one that waited for an answer is replaced."""
        turns = self.turns if self._is_complete() else self.turns[:-1]
        return replace(self, turns=(*turns, Turn(question)))

    def answered(self, answer: str, finish_reason: FinishReason) -> Chat:
        """With the answer to the last question."""
        if not self.turns:
            raise InvalidMessages("there is no question that could be answered", hint="ask one first")
        turn = Turn(self.turns[-1].question, answer, finish_reason)
        return replace(self, turns=(*self.turns[:-1], turn))

    def continued(self, more: str, finish_reason: FinishReason) -> Chat:
        """With more of the last answer."""
        return self.answered(self.turns[-1].answer + more if self.turns else more, finish_reason)

    def unanswered(self) -> Chat:
        """Without the last answer, so that its question can be asked again."""
        if not self.turns:
            raise InvalidMessages("there is no question to ask again", hint="ask one first")
        return replace(self, turns=(*self.turns[:-1], Turn(self.turns[-1].question)))

    def undone(self) -> Chat:
        """Without the last question and its answer."""
        if not self.turns:
            raise InvalidMessages("there is nothing to undo: the conversation is empty")
        return replace(self, turns=self.turns[:-1])

    def cleared(self) -> Chat:
        """Without turns; the system prompt stays."""
        return replace(self, turns=())

    def with_system(self, text: str) -> Chat:
        """With this system prompt; empty is none, which leaves it to the model's template."""
        return replace(self, system=text)

    def messages(self) -> list[Message]:
        """The turns as a model reads them."""
        messages = [Message("system", self.system)] if self.system else []
        for turn in self.turns:
            messages.append(Message("user", turn.question))
            if turn.is_answered:
                messages.append(Message("assistant", turn.answer))
        return messages

    def to_dicts(self) -> list[dict[str, Any]]:
        """The messages as plain data; a partial answer carries its `finish_reason`."""
        messages: list[dict[str, Any]] = [{"role": "system", "content": self.system}] if self.system else []
        for turn in self.turns:
            messages.append({"role": "user", "content": turn.question})
            if turn.is_answered:
                mark = {"finish_reason": turn.finish_reason} if turn.is_partial else {}
                messages.append({"role": "assistant", "content": turn.answer, **mark})
        return messages

    @classmethod
    def from_dicts(cls, messages: Sequence[Mapping[str, Any]]) -> Chat:
        """The inverse of `to_dicts`.

        Raises `InvalidMessages` with the index of the first message that does not fit: the system prompt comes
        first if at all, then questions and answers take turns.
        """
        chat = cls()
        for index, message in enumerate(normalize(messages) if messages else []):
            chat = chat._continued(index, message)
        return chat

    def _continued(self, index: int, message: Message) -> Chat:
        unknown = sorted(set(message.extra) - {"finish_reason"})
        if unknown:
            raise InvalidMessages(f"message {index} has {unknown[0]!r}, which a conversation of turns cannot hold")
        if message.role == "system" and index == 0:
            return self.with_system(message.content)
        if message.role == "user" and self._is_complete():
            return self.asked(message.content)
        if message.role == "assistant" and not self._is_complete():
            return self.answered(message.content, _finish_reason(index, message))
        expected = "a question (user)" if self._is_complete() else "an answer (assistant)"
        raise InvalidMessages(f"message {index} is from {message.role!r}, where {expected} was expected")

    def _is_complete(self) -> bool:
        return not self.turns or self.turns[-1].is_answered


def _finish_reason(index: int, message: Message) -> FinishReason:
    reason: Any = message.extra.get("finish_reason", "stop")
    if reason not in FINISH_REASONS:
        raise InvalidMessages(
            f"message {index} has the finish_reason {reason!r}", hint=f"known are {', '.join(FINISH_REASONS)}"
        )
    checked: FinishReason = reason
    return checked
