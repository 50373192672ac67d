"""A chat in a terminal with a model that needs no weights: `python scripted_chat.py`.

Its tokens are words. What it answers is a function of the question; `SCRIPT_LOG` names a file in which it notes how
each answer went.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaiwa import paths
from kaiwa.chat.model import ModelCard
from kaiwa.errors import ContextOverflow, UnsupportedModel
from kaiwa.events import Event, Finished, FinishReason, PromptProgress, Queued, TextDelta, Timings, Usage
from kaiwa.messages import Conversation, normalize
from kaiwa.sampling import Sampling

CONTEXT_LENGTH = 1000
TALL = "\n".join(f"{number}. This is item **{number}** of a long list." for number in range(1, 61))
CODE = "Here is code:\n\n```python\n" + "\n".join(f"value_{n} = {n}  # line" for n in range(40)) + "\n```\n\nDone."
ANSWERS = {
    "hello": "Hello! How can I **help** you today?",
    "tall": TALL,
    "code": CODE,
    "japanese": "こんにちは、世界。 絵文字 🎉👍 も大丈夫です。",
    "attack": "before \x1b]0;title\x07\x1b[31mred after",
    "slow": "\n\n".join(" ".join(f"word{n}" for n in range(start, start + 10)) for start in range(0, 2000, 10)),
}


class ScriptedModel:
    """A ChatModel whose answers are known in advance."""

    card = ModelCard(
        "scripted:1m", "scripted", "none", "no engine at all", 1_000_000, CONTEXT_LENGTH, 98_000_000, 47_000_000
    )
    sampling = Sampling(temperature=0.7, top_p=0.9)

    def __init__(self) -> None:
        self._known: list[str] = []

    def count_tokens(self, messages: Conversation) -> int:
        return len(self._prompt(messages))

    def stream(self, messages: Conversation, **options: Any) -> Iterator[Event]:
        sampling = self.sampling.updated(options)
        prompt = self._prompt(messages)
        if len(prompt) >= CONTEXT_LENGTH:
            raise ContextOverflow(len(prompt), CONTEXT_LENGTH)
        return self._write(prompt, normalize(messages)[-1].content, sampling)

    def _prompt(self, messages: Conversation) -> list[str]:
        return [token for message in normalize(messages) for token in (f"<{message.role}>", *message.content.split())]

    def _write(self, prompt: list[str], question: str, sampling: Sampling) -> Iterator[Event]:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._known, prompt, strict=False))
        cached = len(list(same))
        text = ANSWERS.get(question, f"You said: {question}")
        tokens = re.findall(r"\s*\S+", text)
        count = 0
        reason: FinishReason = "stop"
        try:
            if question == "busy":
                yield Queued(2)
                time.sleep(0.5)
            yield PromptProgress(len(prompt), len(prompt), cached)
            for token in tokens:
                if sampling.max_new_tokens == count:
                    reason = "length"
                    break
                if question == "slow":
                    time.sleep(0.01)
                if question == "fail" and count == 2:
                    raise UnsupportedModel("the engine has lost a wheel", hint="find it")
                count += 1
                yield TextDelta(token)
            self._known = [*prompt, "<assistant>", *text.split()[:count]]
            yield Finished(reason, Usage(len(prompt), cached, count), Timings(0.05, 0.04, 0.5, 300.0, 123.0))
        finally:
            if log := os.environ.get("SCRIPT_LOG"):
                with Path(log).open("a") as file:
                    file.write(f"{question}: {count} of {len(tokens)} tokens, options {sampling.to_dict()}\n")


def main() -> None:
    from kaiwa.terminal.line_editor import LineEditor
    from kaiwa.terminal.screen import Screen
    from kaiwa.terminal.session import Session
    from kaiwa.terminal.state import ChatState

    state = ChatState(ScriptedModel())
    Session(state, Screen(), LineEditor(paths.history(), state)).run()


if __name__ == "__main__":
    sys.exit(main())
