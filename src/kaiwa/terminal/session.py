"""A chat in a terminal: read a line, answer it or do what it asks, until the person leaves."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, cast

from kaiwa import paths
from kaiwa.chat import history
from kaiwa.chat.conversation import Chat
from kaiwa.chat.history import SavedChat
from kaiwa.errors import ContextOverflow, KaiwaError
from kaiwa.events import BrokenToolCall, Event, Finished, PromptProgress, Queued, ReasoningDelta, TextDelta, ToolCall
from kaiwa.terminal import words
from kaiwa.terminal.answer import AnswerView
from kaiwa.terminal.commands import COMMANDS, Outcome, is_command, message_of, run_command, show_last_turn
from kaiwa.terminal.keyboard import StopKey, held_keys, orderly_end
from kaiwa.terminal.line_editor import LineEditor
from kaiwa.terminal.screen import Screen
from kaiwa.terminal.state import ChatState

LAST_CHAT = "last"
"""The name under which a conversation is kept when a person leaves without saving it."""


@dataclass(slots=True)
class _Written:
    """What came of one answer. `finished` is None where it was stopped or failed."""

    text: str = ""
    finished: Finished | None = None
    problem: KaiwaError | None = None

    @property
    def is_answer(self) -> bool:
        """Whether the conversation can go on with it."""
        return bool(self.text) or (self.finished is not None and self.finished.finish_reason != "cancelled")

    def add(self, event: Event) -> None:
        self.text += event.text
        if isinstance(event, Finished):
            self.finished = event


class Session:
    """One person, one model, one terminal."""

    def __init__(self, state: ChatState, screen: Screen, line_editor: LineEditor) -> None:
        self._state = state
        self._screen = screen
        self._line_editor = line_editor
        self._draft = ""

    def run(self) -> None:
        """Chat until the person leaves. The conversation is kept whatever ends the chat."""
        self._open()
        with orderly_end(), held_keys():
            try:
                while self._turn():
                    pass
            finally:
                self._keep()

    def _open(self) -> None:
        card = self._state.model.card
        screen = self._screen
        screen.say(card.name, style="name")
        screen.pairs(
            [
                ("model", words.kind(card)),
                ("engine", card.engine),
                ("memory", words.memory(card)),
                ("context", f"{card.context_length:,} tokens"),
            ]
        )
        screen.say()
        screen.note("Enter sends, Alt-Enter begins a new line, Ctrl-C stops an answer, Ctrl-D leaves.")
        screen.note("Commands: " + " ".join(f"!{command.name}" for command in COMMANDS if command.name.isalpha()))
        if self._line_editor.history_problem:
            screen.note(self._line_editor.history_problem)
        show_last_turn(screen, self._state)
        screen.say()

    def _turn(self) -> bool:
        """One line of the person's and what follows from it; whether the chat goes on."""
        draft, self._draft = self._draft, ""
        try:
            text = self._line_editor.read(draft)
        except EOFError:
            return False
        except KeyboardInterrupt:
            self._screen.note("Ctrl-D leaves the chat")
            return True
        if is_command(text.lstrip()):
            return self._do(text.lstrip())
        self._ask(message_of(text.strip()))
        return True

    def _do(self, line: str) -> bool:
        try:
            outcome = run_command(self._state, self._screen, line)
        except KaiwaError as error:
            self._screen.error(error)
            outcome = Outcome.STAY
        if outcome is Outcome.RETRY:
            self._answer(self._state.chat.unanswered())
        elif outcome is Outcome.CONTINUE:
            self._answer(self._state.chat, is_continued=True)
        elif outcome is Outcome.ASK:
            self._ask(self._state.question)
        elif outcome is Outcome.STAY:
            self._screen.say()
        return outcome is not Outcome.LEAVE

    def _ask(self, question: str) -> None:
        if not self._answer(self._state.chat.asked(question)):
            self._draft = "!" + question if question.startswith("!") else question

    def _answer(self, chat: Chat, *, is_continued: bool = False) -> bool:
        """Let the model answer the last question of `chat` and go on with it; without one, leave all as it was.

        `is_continued` goes on with the last answer instead.
        """
        self._screen.say()
        written = self._write(chat, is_continued=is_continued)
        if written.is_answer:
            reason = written.finished.finish_reason if written.finished else "cancelled"
            added = chat.continued if is_continued else chat.answered
            self._state.chat = added(written.text, reason)
            self._state.last = written.finished
        if written.text:
            self._screen.say()
        self._say_how_it_ended(written)
        self._screen.say()
        return written.is_answer

    def _write(self, chat: Chat, *, is_continued: bool) -> _Written:
        """Show the model's answer as it comes, until it ends, fails or is stopped."""
        written = _Written()
        options = {**self._state.options, **({"continue_final_message": True} if is_continued else {})}
        try:
            with ExitStack() as stack:
                stop = stack.enter_context(StopKey())
                view = stack.enter_context(AnswerView(self._screen))
                events = self._state.model.stream(chat.messages(), **options)
                stack.enter_context(closing(cast(Any, events)))
                for event in events:
                    written.add(event)
                    _show(view, event)
                    if stop.was_pressed:
                        break
        except KeyboardInterrupt:
            pass  # a second Ctrl-C: the model did not come back after the first
        except KaiwaError as error:
            written.problem = error
        return written

    def _say_how_it_ended(self, written: _Written) -> None:
        screen = self._screen
        if written.problem is not None:
            screen.error(written.problem)
            if written.text:
                screen.note(words.KEPT)
            if isinstance(written.problem, ContextOverflow):
                screen.note("!undo removes the last question and answer, !clear begins a new conversation")
        elif written.finished is None:
            screen.note(words.STOPPED if written.text else words.STOPPED_EARLY)
        else:
            screen.note(words.after_answer(written.finished))
            advice = words.why_it_ended(written.finished, self._state.sampling, self._state.model.card.context_length)
            if advice:
                screen.note(advice)

    def _keep(self) -> None:
        """Leave the conversation on disk under a name of its own, unless the person saved it."""
        state = self._state
        if not state.chat.turns or state.chat == state.saved_chat:
            return
        path = state.folder / f"{LAST_CHAT}.json"
        history.save(path, SavedChat(state.model.card.name, state.sampling, state.chat), overwrite=True)
        name = LAST_CHAT if state.folder == paths.chats() else str(path)
        self._screen.note(f"kaiwa chat --load {name} goes on with this conversation")


def _show(view: AnswerView, event: Event) -> None:
    match event:
        case TextDelta(text):
            view.text(text)
        case ReasoningDelta(reasoning):
            view.reasoning(reasoning)
        case Queued(place):
            view.wait(f"waiting for others: number {place:,} in the queue")
        case PromptProgress(read_tokens, prompt_tokens):
            view.wait(f"reading {read_tokens:,} of {prompt_tokens:,} tokens")
        case BrokenToolCall(text):
            view.text(text)
        case ToolCall(name, arguments):
            view.text(f"\n\nasks to call `{name}` with `{arguments}`\n\n")
        case Finished():
            pass
