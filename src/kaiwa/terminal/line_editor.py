"""The line where a person writes: history, several lines, paste, completion of commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.utils import get_cwidth, is_dumb_terminal

from kaiwa.chat.history import saved_names
from kaiwa.sampling import OPTIONS
from kaiwa.terminal.commands import COMMANDS
from kaiwa.terminal.state import ChatState


class LineEditor:
    """Reads messages and commands. `history_path` is made where it does not exist, readable by its owner only."""

    def __init__(self, history_path: Path, state: ChatState) -> None:
        history, self.history_problem = _history(history_path)
        self._session: PromptSession[str] = PromptSession(
            message=[("bold", state.prompt)],
            prompt_continuation=" " * get_cwidth(state.prompt),
            multiline=True,
            history=history,
            completer=CommandCompleter(state),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=_key_bindings(),
            reserve_space_for_menu=0,
            enable_open_in_editor=True,
            enable_suspend=True,
            output=PlainTextOutput(sys.stdout) if is_dumb_terminal() else None,
        )

    def read(self, draft: str = "") -> str:
        """The next message or command, which begins as `draft`.

        Raises `EOFError` on Ctrl-D, and `KeyboardInterrupt` on Ctrl-C where the line is already empty.
        """
        text = self._session.prompt(default=draft)
        return text.encode("utf-8", "replace").decode()


def _history(path: Path) -> tuple[History, str]:
    """The line history, and what is wrong with its file where it cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        return InMemoryHistory(), f"the line history is not kept: {path}: {error.strerror}"
    return FileHistory(path), ""


def _key_bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if buffer.text.strip():
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


class CommandCompleter(Completer):
    """Names of commands, of options behind `!set`, of examples, and of saved chats behind `!load`."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        if not line.startswith("!") or "\n" in line:
            return
        name, blank, argument = line.partition(" ")
        if not blank:
            yield from _beginning_with(name, (f"!{command.name}" for command in COMMANDS))
        elif name == "!set":
            yield from _beginning_with(argument.rpartition(" ")[2], (f"{option.name}=" for option in OPTIONS))
        elif name == "!load":
            yield from _beginning_with(argument, saved_names(self._state.folder))
        elif name == "!example":
            yield from _beginning_with(argument, self._state.examples)


def _beginning_with(start: str, names: Iterable[str]) -> Iterator[Completion]:
    for name in names:
        if name.startswith(start):
            yield Completion(name, start_position=-len(start))
