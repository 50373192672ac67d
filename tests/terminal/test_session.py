"""Whole chats in a real pseudo-terminal: what a person types, and what they see."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pseudo_terminal import PseudoTerminal, terminal
from scripted_chat import CODE

SCRIPT = [sys.executable, str(Path(__file__).with_name("scripted_chat.py"))]
CTRL_C, CTRL_D, ESCAPE, TAB, UP = "\x03", "\x04", "\x1b", "\t", "\x1b[A"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the model notes how each answer went."""
    return tmp_path / "log"


@pytest.fixture
def chat(tmp_path: Path, log: Path) -> Iterator[PseudoTerminal]:
    """A chat that waits for its first line."""
    with terminal(SCRIPT, tmp_path, SCRIPT_LOG=str(log), NO_COLOR="") as running:
        running.wait_for_prompt()
        yield running


def test_a_whole_chat(chat: PseudoTerminal) -> None:
    chat.say("hello")
    chat.wait_for("123 tokens/s")
    chat.wait_for_prompt()
    chat.type(CTRL_D)
    assert chat.wait_for_end() == 0
    assert chat.everything == (
        """\
scripted:1m
model    scripted, 1 M parameters, none
engine   no engine at all
memory   98 MB weights + 47 MB cache when the context is full
context  1,000 tokens

Enter sends, Alt-Enter begins a new line, Ctrl-C stops an answer, Ctrl-D leaves.
Commands: !help !status !set !system !retry !continue !example !undo !clear
!save !load !exit

> hello

Hello! How can I help you today?

7 tokens, 2 read, 0 cached · 123 tokens/s

>
kaiwa chat --load last goes on with this conversation"""
    )
    assert "\x1b[1mhelp\x1b[0m" in chat.raw


def test_ctrl_c_stops_the_answer_and_keeps_the_chat(chat: PseudoTerminal, log: Path) -> None:
    chat.say("slow")
    chat.wait_for("word30")
    chat.type(CTRL_C)
    chat.wait_for("stopped; what is written stays in the conversation")
    chat.wait_for_prompt()
    assert "^C" not in chat.everything
    written = int(log.read_text().removeprefix("slow: ").split()[0])
    assert 30 < written < 1000
    chat.say("!status")
    chat.wait_for(f"{written + 3} of 1,000 tokens")
    chat.wait_for_prompt()
    chat.say("hello")
    chat.wait_for("How can I help")
    chat.wait_for_prompt()


def test_a_question_that_waits_for_others_says_so(chat: PseudoTerminal) -> None:
    chat.say("busy")
    chat.wait_for("waiting for others: number 2 in the queue")
    chat.wait_for("You said: busy")
    chat.wait_for_prompt()
    assert "waiting for others" not in chat.everything


def test_ctrl_c_at_the_prompt_clears_the_line_and_then_says_how_to_leave(chat: PseudoTerminal) -> None:
    chat.type("not this")
    chat.wait_for("not this")
    chat.type(CTRL_C)
    chat.wait_until(lambda: "not this" not in chat.display, "empty line")
    chat.type(CTRL_C)
    chat.wait_for("Ctrl-D leaves the chat")
    chat.wait_for_prompt()
    chat.say("hello")
    chat.wait_for("How can I help")


def test_keys_typed_during_an_answer_wait_for_the_prompt(chat: PseudoTerminal) -> None:
    chat.say("slow")
    chat.wait_for("word30")
    chat.type("next thing")
    chat.wait_for("word60")
    assert "next thing" not in chat.everything
    chat.type(CTRL_C)
    chat.wait_for("> next thing")
    chat.type("!\r")
    chat.wait_for("You said: next thing!")


def test_a_message_sent_during_an_answer_follows_it(chat: PseudoTerminal) -> None:
    chat.say("slow")
    chat.wait_for("word30")
    chat.type("and then\r" + CTRL_C)
    chat.wait_for("You said: and then")


def test_pasted_lines_are_one_message(chat: PseudoTerminal) -> None:
    chat.type("\x1b[200~first line\r\nsecond line\rthird\x1b[201~")
    chat.wait_for("third")
    chat.type("\r")
    chat.wait_for("You said: first line\nsecond line\nthird")


def test_alt_enter_begins_a_new_line(chat: PseudoTerminal) -> None:
    chat.type("one")
    chat.type(ESCAPE + "\r")
    chat.type("two")
    chat.wait_for("> one\n  two")
    chat.type("\r")
    chat.wait_for("You said: one\ntwo")


def test_japanese_and_emoji(chat: PseudoTerminal) -> None:
    chat.say("猫は🐈ですか")
    chat.wait_until(lambda: "You said: 猫は🐈ですか" in chat.everything.replace("\0", ""), "answer")
    chat.say("japanese")
    chat.wait_for("絵文字")
    chat.wait_for_prompt()


def test_an_answer_taller_than_the_screen_is_whole(chat: PseudoTerminal) -> None:
    chat.say("tall")
    chat.wait_for("123 tokens/s")
    rows = [row.split() for row in chat.everything.split("\n") if "This is item" in row]
    assert [row[0] for row in rows] == [str(number) for number in range(1, 61)]
    chat.wait_for_prompt()
    chat.say("code")
    chat.wait_for("Done.")
    lines = CODE.split("```")[1].split("\n")[1:-1]
    assert "\n".join(lines) in chat.everything


def test_a_model_cannot_steer_the_terminal(chat: PseudoTerminal) -> None:
    chat.say("attack")
    chat.wait_for("red after")
    assert chat.title == ""
    assert "\x1b[31m" not in chat.raw


def test_retry_and_undo(chat: PseudoTerminal) -> None:
    chat.say("!retry")
    chat.wait_for("error: there is no question to ask again")
    chat.say("one")
    chat.wait_for("You said: one")
    chat.say("!retry")
    chat.wait_until(lambda: chat.everything.count("You said: one") == 2, "second answer")
    chat.say("!undo")
    chat.wait_for("removed the last question and its answer: one")
    chat.say("!undo")
    chat.wait_for("nothing to undo")
    chat.wait_for_prompt()


def test_clear_can_be_undone(chat: PseudoTerminal) -> None:
    chat.say("one")
    chat.wait_for("You said: one")
    chat.wait_for_prompt()
    chat.say("!clear")
    chat.wait_for("a new conversation")
    assert "You said: one" not in chat.display
    chat.say("!undo")
    chat.wait_for("the conversation of 1 question is back")


def test_options_are_checked_and_used(chat: PseudoTerminal, log: Path) -> None:
    chat.say("!set temprature=1")
    chat.wait_for("error: there is no option 'temprature'\nhint: did you mean 'temperature'?")
    chat.say("!set max_new_tokens=2 top_p=0.5 stop=['a b', 'c']")
    chat.wait_for("set max_new_tokens=2, top_p=0.5, stop=['a b', 'c']")
    chat.say("a longer question")
    chat.wait_for("cut off at max_new_tokens=2; !continue goes on")
    assert "'top_p': 0.5" in log.read_text()
    chat.say("!status")
    chat.wait_for("max_new_tokens=2 (model: None)")


def test_the_system_prompt_reaches_the_model(chat: PseudoTerminal) -> None:
    chat.say("!system Talk like a cat")
    chat.wait_for("the system prompt is set")
    chat.say("hello")
    chat.wait_for("7 tokens, 7 read")  # <system> and four words, <user> and one
    chat.say("!system none")
    chat.wait_for("the system prompt is removed")


def test_save_and_load(chat: PseudoTerminal, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    chat.say("!set temperature=0.3")
    chat.say("one")
    chat.wait_for("You said: one")
    chat.wait_for_prompt()
    chat.say(f"!save {file}")
    chat.wait_until(lambda: file.exists(), "file")
    saved = json.loads(file.read_text())
    assert saved["settings"]["temperature"] == 0.3
    assert saved["settings"]["top_p"] == 0.9
    assert [message["content"] for message in saved["messages"]] == ["one", "You said: one"]
    chat.wait_for_prompt()
    chat.say("!clear")
    chat.wait_for("a new conversation")
    chat.say("!set temperature=1.0")
    chat.say("two")
    chat.wait_for("You said: two")
    chat.wait_for_prompt()
    chat.say(f"!save {file}")
    chat.wait_for("exists already")
    assert json.loads(file.read_text()) == saved
    chat.wait_for_prompt()
    chat.say(f"!load {file}")
    chat.wait_for("loaded 1 question from")
    chat.say("!status")
    chat.wait_for("temperature=0.3 (model: 0.7)")


def test_files_that_are_no_chats_are_refused(chat: PseudoTerminal, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[]")
    chat.say(f"!load {tmp_path}/no.json")
    chat.wait_for("is not a usable chat file")
    chat.say("!load nothing")
    chat.wait_for("error: there is no saved chat 'nothing'")
    chat.say("!save")
    chat.wait_for("there is nothing to save")


def test_examples_are_asked(chat: PseudoTerminal) -> None:
    chat.say("!example socks")
    chat.wait_for("How many must I take out")
    chat.wait_for("tokens/s")
    chat.wait_for_prompt()
    chat.say("!example sock")
    chat.wait_for("did you mean 'socks'?")


def test_unknown_commands_offer_the_nearest(chat: PseudoTerminal) -> None:
    chat.say("!stauts")
    chat.wait_for("error: there is no command !stauts\nhint: did you mean '!status'?")
    chat.say("!!stauts")
    chat.wait_for("You said: !stauts")


def test_help_lists_every_command(chat: PseudoTerminal) -> None:
    chat.say("!help")
    chat.wait_for("is typed !!.")
    for name in ("help", "status", "set", "system", "retry", "continue", "undo", "clear", "save", "load", "exit"):
        assert f"\n!{name} " in chat.everything


def test_tab_completes_commands_and_options(chat: PseudoTerminal) -> None:
    chat.type("!se" + TAB)
    chat.wait_for("!set")
    chat.type(" pres" + TAB)
    chat.wait_for("!set presence_penalty=")


def test_a_question_that_does_not_fit_is_not_lost(chat: PseudoTerminal) -> None:
    question = "many " * 999 + "words"
    chat.type(f"\x1b[200~{question}\x1b[201~")
    chat.wait_for("words")
    chat.type("\r")
    chat.wait_for("error: the prompt has 1,001 tokens, and the context holds 1,000")
    chat.wait_until(lambda: chat.display.endswith(" words"), "question at the prompt")
    chat.type(CTRL_C)
    chat.wait_for_prompt()
    chat.say("hello")
    chat.wait_for("How can I help")


def test_a_failure_in_mid_answer_keeps_what_is_written(chat: PseudoTerminal) -> None:
    chat.say("fail")
    chat.wait_for("error: the engine has lost a wheel\nhint: find it\nwhat is written stays in the conversation")
    chat.wait_for_prompt()
    chat.say("hello")
    chat.wait_for("7 read")


def test_lines_are_remembered(chat: PseudoTerminal, tmp_path: Path) -> None:
    chat.say("hello")
    chat.wait_for("How can I help")
    chat.wait_for_prompt()
    chat.say("!exit")
    assert chat.wait_for_end() == 0
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0
    with terminal(SCRIPT, tmp_path) as again:
        again.wait_for_prompt()
        again.type(UP + UP)
        again.wait_until(lambda: again.display.endswith("> hello"), "line from before")


def test_a_conversation_that_was_not_saved_is_kept(chat: PseudoTerminal, tmp_path: Path) -> None:
    chat.say("one")
    chat.wait_for("You said: one")
    chat.wait_for_prompt()
    chat.type(CTRL_D)
    assert chat.wait_for_end() == 0
    kept = json.loads((tmp_path / "chats" / "last.json").read_text())
    assert kept["messages"][-1] == {"role": "assistant", "content": "You said: one"}


@pytest.mark.parametrize("question", ["one", "slow"])
def test_a_terminal_that_is_closed_loses_no_conversation(chat: PseudoTerminal, tmp_path: Path, question: str) -> None:
    chat.say("one")
    chat.wait_for("You said: one")
    chat.wait_for_prompt()
    if question == "slow":
        chat.say("slow")
        chat.wait_for("word30")
    chat.send_signal(signal.SIGHUP)
    assert chat.wait_for_end() == 128 + signal.SIGHUP
    kept = json.loads((tmp_path / "chats" / "last.json").read_text())
    assert kept["messages"][:2] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "You said: one"},
    ]


def test_no_color_is_respected(tmp_path: Path) -> None:
    with terminal(SCRIPT, tmp_path, NO_COLOR="1") as chat:
        chat.wait_for_prompt()
        chat.say("code")
        chat.wait_for("Done.")
        assert "\x1b[3" not in chat.raw.replace("\x1b[3m", "")
        assert "\x1b[9" not in chat.raw


def test_a_terminal_that_cannot_move_its_cursor_shows_the_answer_once(tmp_path: Path) -> None:
    with terminal(SCRIPT, tmp_path, TERM="dumb") as chat:
        chat.wait_for_prompt()
        chat.say("hello")
        chat.wait_for("123 tokens/s")
        chat.wait_for_prompt()
        assert chat.raw.count("How can I help") == 1
        assert "\x1b" not in chat.raw


def test_a_narrow_terminal_shows_what_options_mean_below_their_names(tmp_path: Path) -> None:
    with terminal(SCRIPT, tmp_path, columns=32) as chat:
        chat.wait_for_prompt()
        chat.say("!set")
        chat.wait_for("max_new_tokens=None\n  end the answer after this\n  many tokens;")


def test_ctrl_z_leaves_for_the_shell_and_comes_back(tmp_path: Path) -> None:
    shell = ["bash", "--norc", "-i"]
    with terminal(shell, tmp_path, PS1="$ ", HISTFILE="") as chat:
        chat.wait_until(lambda: chat.display.endswith("$"), "shell")
        chat.type(f"{' '.join(SCRIPT)}\r")
        chat.wait_for_prompt()
        chat.type("\x1a")
        chat.wait_for("Stopped")
        chat.type("fg\r")
        chat.wait_for_prompt()
        chat.say("slow")
        chat.wait_for("word30")
        chat.type("\x1a")
        chat.wait_until(lambda: chat.everything.count("Stopped") == 2, "shell")
        chat.type("echo $((6 * 7))\r")
        chat.wait_for("42")
        chat.type("fg\r")
        seen = max(int(number) for number in re.findall(r"word(\d+)", chat.everything))
        chat.wait_until(lambda: f"word{seen + 30}" in chat.everything, "more of the answer")
        chat.type("hidden\x03")
        chat.wait_for("> hidden")
        chat.type("\r")
        chat.wait_for("You said: hidden")
        assert chat.everything.count("hidden") == 2


def test_a_line_history_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with terminal(SCRIPT, tmp_path / "home") as chat:
        chat.wait_for("the line history is not kept")
        chat.wait_for_prompt()
        chat.say("hello")
        chat.wait_for("How can I help")
