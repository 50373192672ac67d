"""Every error that Kaiwa raises on purpose.

KaiwaError                    what happened; .hint says what to do about it
├── InvalidOption             a sampling or engine option is unknown, or its value impossible
├── InvalidMessages           a conversation has a shape that no chat model accepts
├── ModelNotFound             a name or path leads to no model
├── DownloadFailed            a model could not be fetched, or its checksum is wrong
├── UnusableFile              a model file is broken, cut short or of another kind
│   └── UnsupportedFormat     the file is whole, but Kaiwa cannot read what it holds
├── UnsupportedModel          no engine here runs this model family or configuration
├── TemplateError             a chat template cannot be read, or refuses the conversation
├── ContextOverflow           the prompt does not fit the context; .prompt_tokens, .context_length
├── NumericalError            the model computed numbers that are no answer: NaN, or infinite
├── OutOfMemory               the model would not fit in memory; says how much it needs
├── Busy                      too many requests wait already; .place, .retry_after_s
├── CacheFailed               a quantized model could not be kept on disk
├── EngineCrashed             the process that holds a model ended by itself; .exit_code
├── BatchFailed               some of several answers could not be given; .answers, .problems
├── RemoteFailed              a model on another server did not answer; .status
├── InvalidHook               a function cannot be the hook that it is registered for
├── InvalidApp                an app cannot be loaded or served as it is
├── NoChat                    what belongs to a chat was used outside of one
├── Refused                   a page asked for something that it cannot have; .code
├── AskTimedOut               nobody answered a question in time
├── StorageFailed             chats could not be read or written
├── MissingExtra              an optional package is not installed; says the command
└── Cancelled                 the work was stopped on request
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class KaiwaError(Exception):
    """Base of all errors above.

    `hint` is one sentence that says what to do, or empty; the command line prints it on its own line.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross between processes as they are, whatever they were made from."""
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(kind: type[KaiwaError], arguments: tuple[Any, ...]) -> KaiwaError:
    builtin: type = kind  # whose memory the error has: of two bases, such as MemoryError, only one makes it
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__ or builtin
    error = builtin.__new__(kind, *arguments)
    error.args = arguments
    return error


class InvalidOption(KaiwaError, ValueError):
    """An option's name is unknown, or its value is outside what it may be."""


class InvalidMessages(KaiwaError, ValueError):
    """A conversation is empty, or one of its messages has a wrong role or content."""


class ModelNotFound(KaiwaError, LookupError):
    """A name or path leads to no model."""


class DownloadFailed(KaiwaError):
    """A model could not be fetched, or what arrived is not what was asked for."""


class UnusableFile(KaiwaError, ValueError):
    """A model file is broken: `<path> is not a usable <kind> file: <reason>`."""

    def __init__(self, path: object, kind: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{path} is not a usable {kind} file: {reason}", hint=hint)
        self.path = path
        self.kind = kind
        self.reason = reason


class UnsupportedFormat(UnusableFile):
    """A model file is whole, but uses a number format or version that Kaiwa cannot read."""


class UnsupportedModel(KaiwaError):
    """No engine here runs this family, or this configuration of it."""


class TemplateError(KaiwaError, ValueError):
    """A chat template cannot be read, ran out of its bounds, or refused the conversation."""


class ContextOverflow(KaiwaError, ValueError):
    """The prompt has more tokens than the context holds.

    `prompt_tokens` and `context_length` are token counts.
    """

    def __init__(self, prompt_tokens: int, context_length: int) -> None:
        over = prompt_tokens - context_length + 1
        super().__init__(
            f"the prompt has {prompt_tokens:,} tokens, and the context holds {context_length:,} "
            f"including at least one token of the answer: {over:,} too many",
            hint="shorten or remove earlier messages, or load the model with a longer context_length",
        )
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length


class NumericalError(KaiwaError, ArithmeticError):
    """The model computed logits that are NaN or infinite, so that no token can be chosen."""


class OutOfMemory(KaiwaError, MemoryError):
    """The model would not fit into the memory that is free."""


class Busy(KaiwaError):
    """So many requests wait that one more is not taken.

    `place` is where it would have stood in the queue, and `retry_after_s` when there will probably be room.
    """

    def __init__(self, place: int, retry_after_s: float) -> None:
        super().__init__(
            f"{place - 1:,} requests wait already, as many as are taken",
            hint=f"ask again in about {max(1, round(retry_after_s)):,} s",
        )
        self.place = place
        self.retry_after_s = retry_after_s


class CacheFailed(KaiwaError):
    """What Kaiwa makes once and keeps could not be written to its folder."""


class EngineCrashed(KaiwaError):
    """The process that holds a model ended by itself, and with it what it was answering.

    `exit_code` is what the system says of it: negative where a signal ended it; None where it never began.
    """

    def __init__(self, message: str, *, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class BatchFailed(KaiwaError):
    """Some of several answers could not be given.

    `answers` has all others, and None in the places of those; `problems` are the errors by their place.
    """

    def __init__(self, answers: list[Any], problems: Mapping[int, KaiwaError]) -> None:
        first, error = next(iter(problems.items()))
        super().__init__(
            f"{len(problems)} of {len(answers)} prompts could not be answered; prompt {first}: {error}",
            hint="the error's .answers has the others",
        )
        self.answers = answers
        self.problems = dict(problems)


class RemoteFailed(KaiwaError):
    """A server that holds a model did not answer, or broke off; `status` is HTTP's, or None without an answer."""

    def __init__(self, message: str, *, status: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class InvalidHook(KaiwaError, TypeError):
    """A function cannot be the hook that it is registered for: its parameters, or there is one already."""


class InvalidApp(KaiwaError):
    """An app cannot be loaded, or not be served as it is."""


class NoChat(KaiwaError, RuntimeError):
    """Something that belongs to a chat was used where there is none."""


class Refused(KaiwaError):
    """A page asked for something that it cannot have. `code` is for programs: "not_found", "too_large"."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class AskTimedOut(KaiwaError, TimeoutError):
    """Nobody answered a question in time, and the app asked to hear of it."""


class StorageFailed(KaiwaError):
    """Chats could not be read or written."""


class MissingExtra(KaiwaError, ImportError):
    """An optional package that a feature needs is not installed."""


class Cancelled(KaiwaError):
    """The work was stopped on request."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that offers the nearest of the `known` names, or lists them all."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}"
