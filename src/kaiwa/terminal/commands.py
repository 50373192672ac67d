"""The `!` commands of a chat: one table, from which help, completion and the offer of near names are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from kaiwa.chat import history
from kaiwa.chat.conversation import Chat
from kaiwa.chat.history import SavedChat
from kaiwa.errors import KaiwaError, did_you_mean
from kaiwa.sampling import OPTIONS, parse_assignment
from kaiwa.terminal import words
from kaiwa.terminal.answer import AnswerView
from kaiwa.terminal.examples import EXAMPLES
from kaiwa.terminal.screen import Screen
from kaiwa.terminal.state import ChatState


class Outcome(Enum):
    """What the session does after a command."""

    STAY = "stay"
    RETRY = "retry"
    CONTINUE = "continue"
    ASK = "ask"
    """The question that the state has."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table. `run` gets what stands behind the name."""

    name: str
    arguments: str
    help: str
    run: Callable[[ChatState, Screen, str], Outcome]


def is_command(text: str) -> bool:
    """Whether a person's line is a command; `!!` begins a message that begins with `!`."""
    return text.startswith("!") and not text.startswith("!!")


def message_of(text: str) -> str:
    """The message that a person's line stands for."""
    return text[1:] if text.startswith("!!") else text


def run_command(state: ChatState, screen: Screen, line: str) -> Outcome:
    """Carry out one command. Raises `KaiwaError` where it cannot be."""
    name, *rest = re.split(r"\s+", line[1:].strip(), maxsplit=1)
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        near = did_you_mean(f"!{name}", [f"!{command.name}" for command in COMMANDS])
        raise KaiwaError(f"there is no command !{name}", hint=f"{near} (a message that begins with ! is typed !!)")
    argument = rest[0] if rest else ""
    if argument and not command.arguments:
        raise KaiwaError(f"!{name} takes nothing behind it, not {argument!r}", hint=f"!{name} alone")
    return command.run(state, screen, argument)


def _help(state: ChatState, screen: Screen, argument: str) -> Outcome:
    screen.pairs(((f"!{command.name} {command.arguments}", command.help) for command in COMMANDS), style="command")
    screen.say()
    screen.note("Enter sends, Alt-Enter (or Esc, Enter) begins a new line, a pasted text stays one message.")
    screen.note("Ctrl-C stops an answer or clears the line, Ctrl-D leaves. A message that begins with ! is typed !!.")
    return Outcome.STAY


def _status(state: ChatState, screen: Screen, argument: str) -> Outcome:
    card = state.model.card
    used = state.model.count_tokens(state.chat.messages()) if state.chat.turns else 0
    rows = [
        ("model", f"{card.name} ({words.kind(card)})"),
        ("engine", card.engine),
        ("memory", words.memory(card)),
        ("context", words.gauge(used, card.context_length)),
        ("options", words.changed_options(state.sampling, state.model.sampling) or "the model's own"),
        ("model's own", words.own_options(state.model.sampling)),
    ]
    if state.chat.system:
        rows.append(("system", state.chat.system))
    if state.last:
        rows += [("last answer", words.tokens(state.last)), ("speed", words.speeds(state.last))]
    screen.pairs(rows)
    return Outcome.STAY


def _set(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not argument:
        values = state.sampling.to_dict()
        screen.pairs(((words.option(row.name, values[row.name]), row.help) for row in OPTIONS), style="command")
        return Outcome.STAY
    assignments = re.split(r"\s+(?=[A-Za-z][\w-]*=)", argument)
    changes = dict(parse_assignment(assignment) for assignment in assignments)
    state.options.update(changes)
    screen.note("set " + ", ".join(words.option(name, value) for name, value in changes.items()))
    return Outcome.STAY


def _system(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not argument:
        screen.note(f"system prompt: {state.chat.system}" if state.chat.system else "there is no system prompt")
        screen.note("!system TEXT sets one, !system none removes it")
        return Outcome.STAY
    text = "" if argument.lower() == "none" else argument
    state.chat = state.chat.with_system(text)
    screen.note("the system prompt is set, from the next answer on" if text else "the system prompt is removed")
    return Outcome.STAY


def _clear(state: ChatState, screen: Screen, argument: str) -> Outcome:
    had_turns = bool(state.chat.turns)
    state.replace_chat(state.chat.cleared())
    screen.clear()
    kept = "system prompt and options are kept" if state.chat.system else "options are kept"
    screen.note(f"a new conversation; {kept}" + (", !undo brings the old one back" if had_turns else ""))
    return Outcome.STAY


def _save(state: ChatState, screen: Screen, argument: str) -> Outcome:
    path = history.typed_path(argument) if argument else state.saved_to
    return _write(state, screen, path, overwrite=path is not None and path == state.saved_to)


def _save_over(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not argument:
        raise KaiwaError("!save! needs to know which file to replace", hint="!save! FILE")
    return _write(state, screen, history.typed_path(argument), overwrite=True)


def _write(state: ChatState, screen: Screen, path: Path | None, *, overwrite: bool) -> Outcome:
    if not state.chat.turns:
        raise KaiwaError("there is nothing to save: the conversation is empty")
    path = path or history.default_path(state.chat, datetime.now(), state.folder)
    existed = path.exists()
    if existed and not overwrite:
        raise KaiwaError(f"{path} exists already", hint=f"choose another name, or replace it with !save! {path}")
    history.save(path, SavedChat(state.model.card.name, state.sampling, state.chat), overwrite=overwrite)
    state.saved_to, state.saved_chat = path, state.chat
    screen.note(f"saved to {path}" + (", in place of what was there" if existed else ""))
    return Outcome.STAY


def _load(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not argument:
        names = history.saved_names(state.folder)[:5]
        hint = f"the last ones are {', '.join(names)}" if names else "nothing has been saved yet"
        raise KaiwaError("!load needs to know which file", hint=hint)
    path = history.find(argument, state.folder)
    saved = history.load(path)
    state.replace_chat(saved.chat)
    state.options = saved.options_beside(state.model.sampling)
    screen.note(f"loaded {_questions(saved.chat)} from {path}")
    if saved.model != state.model.card.name:
        screen.note(f"{saved.model} answered there; {state.model.card.name} goes on")
    show_last_turn(screen, state)
    return Outcome.STAY


def show_last_turn(screen: Screen, state: ChatState) -> None:
    """The last question and answer, to remember where a conversation was."""
    if not state.chat.turns:
        return
    turn = state.chat.turns[-1]
    screen.say()
    screen.say(f"{state.prompt}{turn.question}", style="note")
    if turn.answer:
        screen.say()
        with AnswerView(screen) as view:
            view.text(turn.answer)


def _retry(state: ChatState, screen: Screen, argument: str) -> Outcome:
    state.chat.unanswered()  # raises where there is no question
    sampling = state.sampling
    if sampling.is_greedy or sampling.seed is not None:
        why = "do_sample=False" if sampling.is_greedy else f"seed={sampling.seed}"
        screen.note(f"with {why} the answer will be the same; !set {_freedom(state)} allows another")
    return Outcome.RETRY


def _freedom(state: ChatState) -> str:
    if not state.sampling.is_greedy:
        return "seed=None"
    return "temperature=0.7" if state.sampling.do_sample else "do_sample=True"


def _continue(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not state.chat.turns or not state.chat.turns[-1].is_answered:
        raise KaiwaError("there is no answer to go on with", hint="ask a question first")
    return Outcome.CONTINUE


def _undo(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if not state.chat.turns and state.set_aside is not None:
        state.chat, state.set_aside = state.set_aside, None
        screen.note(f"the conversation of {_questions(state.chat)} is back")
        return Outcome.STAY
    question = state.chat.turns[-1].question if state.chat.turns else ""
    state.chat = state.chat.undone()
    state.last = None
    screen.note(f"removed the last question and its answer: {_shortened(question)}")
    return Outcome.STAY


def _questions(chat: Chat) -> str:
    return "1 question" if len(chat.turns) == 1 else f"{len(chat.turns)} questions"


def _shortened(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _example(state: ChatState, screen: Screen, argument: str) -> Outcome:
    if argument not in state.examples:
        what = f"there is no example {argument!r}" if argument else "!example needs to know which"
        raise KaiwaError(what, hint=did_you_mean(argument, state.examples))
    state.question = state.examples[argument]
    screen.say(f"{state.prompt}{state.question}", style="note")
    return Outcome.ASK


def _exit(state: ChatState, screen: Screen, argument: str) -> Outcome:
    return Outcome.LEAVE


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "list these commands", _help),
    Command("status", "", "model, memory, options, context used, speed of the last answer", _status),
    Command("set", "name=value …", "change sampling options; without any, list them", _set),
    Command("system", "TEXT", "set the system prompt; without text, show it", _system),
    Command("retry", "", "answer the last question anew", _retry),
    Command("continue", "", "go on with an answer that was stopped or cut off, where it ended", _continue),
    Command("example", "NAME", f"ask a question to try the model with: {', '.join(EXAMPLES)}", _example),
    Command("undo", "", "remove the last question and its answer", _undo),
    Command("clear", "", "begin a new conversation", _clear),
    Command("save", "[FILE]", "write conversation and options to a file", _save),
    Command("save!", "FILE", "the same, in place of a file that exists", _save_over),
    Command("load", "FILE", "go on with a saved conversation and its options", _load),
    Command("exit", "", "leave, as Ctrl-D does", _exit),
)
