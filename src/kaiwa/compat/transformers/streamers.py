"""Streamers: what is called with an answer while it is being written."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any, Self

from kaiwa.errors import InvalidOption


class BaseStreamer:
    """Gets token ids: first those of the prompt, then the answer's as they come, then the end."""

    def put(self, value: list[int]) -> None:
        """Token ids."""
        raise NotImplementedError

    def end(self) -> None:
        """The answer is over."""
        raise NotImplementedError

    def fail(self, error: BaseException) -> None:
        """The answer ended with an error, which whoever called `generate` gets as well."""
        self.end()


class TextStreamer(BaseStreamer):
    """Prints an answer as it is written. Subclasses say in `on_finalized_text` what else to do with each piece.

    A piece never ends inside a character. `skip_prompt` leaves the prompt out; special tokens of the answer never show.
    """

    def __init__(self, tokenizer: Any = None, skip_prompt: bool = False, *, skip_special_tokens: bool = True) -> None:
        if not skip_special_tokens:
            raise InvalidOption(
                "skip_special_tokens=False is impossible: special tokens of an answer are never shown",
                hint="leave it out; decode what generate() returns to see them",
            )
        self.tokenizer = tokenizer
        self.skip_prompt = skip_prompt

    def put(self, value: list[int]) -> None:
        """Token ids of the prompt, or of anything else that is to be shown as text."""
        if self.tokenizer is None:
            raise InvalidOption("this streamer has no tokenizer for token ids", hint="pass a tokenizer to it")
        self.write(self.tokenizer.decode(value, skip_special_tokens=True))

    def write(self, text: str) -> None:
        """The next piece of text."""
        if text:
            self.on_finalized_text(text)

    def end(self) -> None:
        self.on_finalized_text("", stream_end=True)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Print a piece; after the last, a new line."""
        print(text, flush=True, end="\n" if stream_end else "")


class TextIteratorStreamer(TextStreamer):
    """An iterator of the pieces, for code that calls `generate` in another thread.

    It ends when the answer does; where `generate` fails, it raises the same error instead of waiting for ever.
    `timeout` is how many seconds the next piece may take, before `queue.Empty` is raised.
    """

    def __init__(
        self,
        tokenizer: Any = None,
        skip_prompt: bool = False,
        timeout: float | None = None,
        *,
        skip_special_tokens: bool = True,
    ) -> None:
        super().__init__(tokenizer, skip_prompt, skip_special_tokens=skip_special_tokens)
        self.timeout = timeout
        self._pieces: queue.Queue[str | BaseException | None] = queue.Queue()

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Hand a piece to whoever iterates."""
        if text:
            self._pieces.put(text)
        if stream_end:
            self._pieces.put(None)

    def fail(self, error: BaseException) -> None:
        self._pieces.put(error)

    def __iter__(self) -> Self | Iterator[str]:
        return self

    def __next__(self) -> str:
        piece = self._pieces.get(timeout=self.timeout)
        if piece is None:
            raise StopIteration
        if isinstance(piece, BaseException):
            raise piece
        return piece
