"""The text of one answer: from token ids as they are sampled to the events that a reader gets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from kaiwa.engines.engine import Logprobs
from kaiwa.events import Event, ReasoningDelta, TextDelta, TokenLogprob, TokenLogprobs
from kaiwa.text.decoder import Decoder
from kaiwa.text.stop_strings import StopStrings
from kaiwa.text.tokenizer import Tokenizer


class Parser(Protocol):
    """Finds thoughts and calls of tools in the text of an answer, whatever pieces it arrives in."""

    def push(self, text: str) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class PlainText:
    """The parser of answers that are text and nothing else."""

    def push(self, text: str) -> list[Event]:
        """The text as it is."""
        return [TextDelta(text)] if text else []

    def finish(self) -> list[Event]:
        """Nothing was held back."""
        return []


class AnswerText:
    """Decodes tokens, watches for stop strings and for tokens that end the answer."""

    def __init__(
        self, tokenizer: Tokenizer, *, end_ids: Collection[int], stop: Sequence[str] = (), parser: Parser | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._decoder = Decoder(tokenizer)
        self._stop_strings = StopStrings(stop)
        self._parser = parser or PlainText()
        self._logprobs: list[TokenLogprobs] = []
        """Of tokens whose text is still held back."""

    @property
    def stop_string(self) -> str:
        """The stop string that was met, if any."""
        return self._stop_strings.met

    def push(self, token_id: int, logprobs: Logprobs | None = None) -> tuple[list[Event], bool]:
        """The events that come of a token, and whether it ends the answer; call `finish` in either case at the end."""
        if token_id in self._end_ids:
            return [], True
        if logprobs is not None:
            self._logprobs.append(self._named(token_id, logprobs))
        text, is_stopped = self._stop_strings.push(self._decoder.push(token_id))
        return self._events(self._parser.push(text) if text else []), is_stopped

    def finish(self) -> tuple[list[Event], bool]:
        """What was held back, and whether it had a stop string."""
        text, is_stopped = self._stop_strings.push(self._decoder.flush())
        text += self._stop_strings.flush()
        events = [*(self._parser.push(text) if text else []), *self._parser.finish()]
        return self._events(events), is_stopped

    def _events(self, events: list[Event]) -> list[Event]:
        """Hand the logprobs of the tokens so far to the text that came of them; thoughts have none."""
        if not self._logprobs or not events:
            return events
        for place, event in enumerate(events):
            if isinstance(event, TextDelta):
                events = [*events[:place], replace(event, logprobs=tuple(self._logprobs)), *events[place + 1 :]]
                break
        if any(isinstance(event, TextDelta | ReasoningDelta) for event in events):
            self._logprobs.clear()
        return events

    def _named(self, token_id: int, logprobs: Logprobs) -> TokenLogprobs:
        token_bytes = self._tokenizer.token_bytes
        best = tuple(TokenLogprob(other, token_bytes(other), logprob) for other, logprob in logprobs.best)
        return TokenLogprobs(token_id, token_bytes(token_id), logprobs.sampled, best)
