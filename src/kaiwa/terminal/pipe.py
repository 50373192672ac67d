"""Chat in a pipe: the whole input is one message, the output is the answer and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any, cast

from kaiwa.chat.conversation import Chat
from kaiwa.chat.model import ChatModel
from kaiwa.errors import InvalidMessages


def read_question() -> str:
    """The message on standard input, up to its end. Raises `InvalidMessages` where there is none."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        print("write a message; Ctrl-D on an empty line ends it", file=sys.stderr)
    question = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    if not question:
        raise InvalidMessages("the message on standard input is empty", hint="printf 'Hi\\n' | kaiwa chat")
    return question


def answer(model: ChatModel, chat: Chat, options: Mapping[str, Any]) -> None:
    """Write the answer to the last question of `chat` to standard output, as it comes, with a line end after it."""
    write = sys.stdout.write
    last = ""
    events = model.stream(chat.messages(), **options)
    with closing(cast(Any, events)):
        for event in events:
            if event.text:
                last = event.text
                write(last)
                sys.stdout.flush()
    if not last.endswith("\n"):
        write("\n")
    sys.stdout.flush()
