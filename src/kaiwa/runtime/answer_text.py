"""The text of one answer: from token ids as they are sampled to the events that a reader gets."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kaiwa.engines.engine import Logprobs
from kaiwa.events import Event, TokenLogprob, TokenLogprobs
from kaiwa.text.answers.decoder import Decoder
from kaiwa.text.answers.stop_strings import StopStrings
from kaiwa.text.answers.stream_parser import StreamParser
from kaiwa.text.tokens.tokenizer import Tokenizer


class AnswerText:
    """Decodes tokens, watches for stop strings and for tokens that end the answer.

    The `parser` finds thoughts and calls of tools in the text. Control tokens that are `shown` are for it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        end_ids: Collection[int],
        stop: Sequence[str] = (),
        parser: StreamParser | None = None,
        shown: Collection[str] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._decoder = Decoder(tokenizer, shown=shown)
        self._stop_strings = StopStrings(stop)
        self._parser = parser or StreamParser(None)
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
        return self._parse(text), is_stopped

    def finish(self) -> tuple[list[Event], bool]:
        """What was held back, and whether it had a stop string."""
        text, is_stopped = self._stop_strings.push(self._decoder.flush())
        return [*self._parse(text + self._stop_strings.flush()), *self._parser.finish()], is_stopped

    def _parse(self, text: str) -> list[Event]:
        """The events of a piece of text, which the tokens so far have made."""
        if not text:
            return []
        logprobs, self._logprobs = self._logprobs, []
        return self._parser.push(text, logprobs)

    def _named(self, token_id: int, logprobs: Logprobs) -> TokenLogprobs:
        token_bytes = self._tokenizer.token_bytes
        best = tuple(TokenLogprob(other, token_bytes(other), logprob) for other, logprob in logprobs.best)
        return TokenLogprobs(token_id, token_bytes(token_id), logprobs.sampled, best)
