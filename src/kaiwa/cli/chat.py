"""`kaiwa chat`: talk to a model, in a terminal or in a pipe."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiwa.errors import InvalidOption
from kaiwa.sampling import OPTIONS, Sampling, parse_assignment

if TYPE_CHECKING:
    from kaiwa.chat.conversation import Chat
    from kaiwa.chat.model import ChatModel

SUMMARY = "Chat with a model."
DEFAULT_MODEL = "smollm2:135m"
_ASSIGNMENT = re.compile(r"[A-Za-z][\w-]*=")


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for on the command line."""

    model: str
    options: dict[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.usage = "kaiwa chat [MODEL] [name=value …] [--system TEXT] [--load FILE] [--threads N] [--context N]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="MODEL name=value",
        help=f"a model's name, a .gguf file or a folder with config.json (default: {DEFAULT_MODEL}); "
        "then options of sampling, listed below",
    )
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--load", metavar="FILE", help="go on with a saved chat and its options")
    parser.add_argument("--threads", metavar="N", type=positive, help="processor threads (default: as many as help)")
    parser.add_argument("--context", metavar="N", type=positive, help="context in tokens (default: the model's own)")
    parser.epilog = _options_help()


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _options_help() -> str:
    defaults = Sampling().to_dict()
    width = max(len(option.name) for option in OPTIONS)
    lines = ["options of sampling (name=value); what a model asks for itself comes before the default given here:"]
    for option in OPTIONS:
        default = "none" if option.kind == "strings" else defaults[option.name]
        lines.append(f"  {option.name:{width}}  {option.help}")
        lines.append(f"  {'':{width}}  {option.range} (default: {default})")
    return "\n".join([*lines, "", "examples:", *_EXAMPLES])


_EXAMPLES = (
    "  kaiwa chat",
    "  kaiwa chat model.gguf temperature=0.2 --system 'Answer in one sentence.'",
    "  printf 'Hi\\n' | kaiwa chat do_sample=False max_new_tokens=10",
)


def parse(words: list[str]) -> Request:
    """The model and the options among the words of the command line.

    The first word is the model unless it is an assignment; a path that exists is a path, even with a `=` in it.
    """
    is_option = not words or (_ASSIGNMENT.match(words[0]) and not Path(words[0]).exists())
    model, assignments = (DEFAULT_MODEL, words) if is_option else (words[0], words[1:])
    options: dict[str, Any] = {}
    for word in assignments:
        name, value = parse_assignment(word)
        if name in options:
            raise InvalidOption(f"{name} is given twice", hint=f"leave one of the two {name}=… out")
        options[name] = value
    return Request(model, options)


def run(arguments: argparse.Namespace) -> int:
    """Chat until the person leaves, or answer the one message of a pipe."""
    request = parse(arguments.words)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _talk(request, arguments)
    else:
        _answer(request, arguments)
    return 0


def _talk(request: Request, arguments: argparse.Namespace) -> None:
    model = _load(request, arguments, meanwhile=_import_session)
    from kaiwa import paths
    from kaiwa.terminal.line_editor import LineEditor
    from kaiwa.terminal.screen import Screen
    from kaiwa.terminal.session import Session
    from kaiwa.terminal.state import ChatState

    chat, options = _beginning(request, arguments, model)
    state = ChatState(model, chat, options)
    Session(state, Screen(), LineEditor(paths.history())).run()


def _import_session() -> None:
    import kaiwa.terminal.session  # noqa: F401  the slow imports, while the model loads


def _answer(request: Request, arguments: argparse.Namespace) -> None:
    from kaiwa.terminal import pipe

    questions: list[str] = []
    model = _load(request, arguments, meanwhile=lambda: questions.append(pipe.read_question()))
    chat, options = _beginning(request, arguments, model)
    pipe.answer(model, chat.asked(questions[0]), options)


def _load(request: Request, arguments: argparse.Namespace, *, meanwhile: Callable[[], object]) -> ChatModel:
    from kaiwa.terminal import loading

    def work(progress: Callable[[Any], None]) -> ChatModel:
        from kaiwa.runtime.llm import LLM

        return LLM(request.model, context_length=arguments.context, threads=arguments.threads, progress=progress)

    return loading.load(work, meanwhile=meanwhile)


def _beginning(request: Request, arguments: argparse.Namespace, model: ChatModel) -> tuple[Chat, dict[str, Any]]:
    """The conversation and the options to begin with: those of `--load`, and over them those that are typed."""
    from kaiwa.chat import history
    from kaiwa.chat.conversation import Chat

    chat, options = Chat(), {}
    if arguments.load is not None:
        saved = history.load(history.find(arguments.load))
        chat, options = saved.chat, saved.options_beside(model.sampling)
    if arguments.system is not None:
        chat = chat.with_system(arguments.system)
    return chat, {**options, **request.options}
