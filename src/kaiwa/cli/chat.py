"""`kaiwa chat`: talk to a model, in a terminal or in a pipe."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiwa import paths
from kaiwa.chat.address import is_address
from kaiwa.cli.main import add_engine_arguments, engine_options
from kaiwa.errors import InvalidOption
from kaiwa.sampling import OPTIONS, Sampling, parse_assignment

if TYPE_CHECKING:
    from kaiwa.chat.model import ChatModel
    from kaiwa.chat.remote import RemoteModel
    from kaiwa.runtime.llm import LLM
    from kaiwa.terminal.state import ChatState

SUMMARY = "Chat with a model."
_ASSIGNMENT = re.compile(r"[A-Za-z][\w-]*=")


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for on the command line; without a `model`, the default one."""

    model: str | None
    options: dict[str, Any]
    url: str | None = None
    """The address of a server that has the model."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from kaiwa.runtime.loading.loader import DEFAULT_MODEL, ENGINES
    from kaiwa.terminal.options_help import options_help

    parser.usage = "kaiwa chat [MODEL] [ADDRESS] [name=value …] [flags]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="MODEL name=value",
        help=f"a model's name (also on the Hugging Face Hub), a .gguf file or a folder with config.json "
        f"(default: {DEFAULT_MODEL}); then options of sampling, listed below",
    )
    chat = parser.add_argument_group("the conversation")
    chat.add_argument("--system", "--system-prompt", metavar="TEXT", help="the system prompt")
    chat.add_argument("--load", metavar="FILE", help="go on with a saved chat and its options")
    chat.add_argument("--save-folder", metavar="FOLDER", help="where !save keeps chats (default: Kaiwa's own)")
    chat.add_argument("--examples-path", metavar="FILE", help="questions for !example: a YAML file, a name with each")
    chat.add_argument("--user", metavar="NAME", default="", help="a name for you, to stand at the prompt")
    chat.add_argument(
        "--generation-config",
        metavar="FILE",
        help="options of sampling from a generation_config.json, its folder, or a name on the hub",
    )
    here = parser.add_argument_group("a model on this machine")
    add_engine_arguments(here)
    here.add_argument("--engine", metavar="NAME", help=f"what runs the model: {', '.join(ENGINES)} (default: auto)")
    there = parser.add_argument_group("a model on a server")
    there.add_argument(
        "--url",
        metavar="ADDRESS",
        help="chat with a model on a server that speaks OpenAI's API; MODEL is its name there, and the variable "
        "KAIWA_API_KEY has the key",
    )
    parser.epilog = "\n".join(
        [
            "options of sampling, as name=value; what a model asks for itself comes before",
            "the defaults given here",
            "",
            *options_help(shutil.get_terminal_size().columns - 2),
            "",
            "examples:",
            *_EXAMPLES,
        ]
    )


_EXAMPLES = (
    "  kaiwa chat",
    "  kaiwa chat Qwen/Qwen2.5-0.5B-Instruct do_sample=False max_new_tokens=10",
    "  kaiwa chat model.gguf temperature=0.2 --system 'Answer in one sentence.'",
    "  kaiwa chat qwen3:4b --url http://127.0.0.1:8000/v1",
    "  printf 'Hi\\n' | kaiwa chat do_sample=False max_new_tokens=10",
)


def parse(words: list[str]) -> Request:
    """The model and the options among the words of the command line.

    The first word is the model unless it is an assignment; a path that exists is a path, even with a `=` in it. Behind
    it, or in its place, may stand the address of a server. `stop_strings` is transformers' name of `stop`.
    """
    is_none = not words or is_address(words[0]) or (_ASSIGNMENT.match(words[0]) and not Path(words[0]).exists())
    model, assignments = (None, list(words)) if is_none else (words[0], words[1:])
    url = assignments.pop(0) if assignments and is_address(assignments[0]) else None
    options: dict[str, Any] = {}
    for word in assignments:
        name, value = parse_assignment(re.sub("^stop[_-]strings=", "stop=", word))
        if name in options:
            raise InvalidOption(f"{name} is given twice", hint=f"leave one of the two {name}=… out")
        options[name] = value
    return Request(model, options, url)


def run(arguments: argparse.Namespace) -> int:
    """Chat until the person leaves, or answer the one message of a pipe."""
    request = parse(arguments.words)
    if request.url is not None:
        arguments.url = request.url
    request.options.update({**_options_of(arguments.generation_config), **request.options})
    begin = _beginning(request, arguments)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _talk(request, begin, arguments)
    else:
        _answer(request, begin, arguments)
    return 0


def _options_of(name: str | None) -> dict[str, Any]:
    """The options of sampling that a `generation_config.json` has; what else it says is left."""
    if name is None:
        return {}
    from kaiwa.weights import generation_config

    content = generation_config.read(name)
    found = Sampling.from_generation_config(content)
    return {option.name: getattr(found, option.name) for option in OPTIONS if content.get(option.name) is not None}


def _beginning(request: Request, arguments: argparse.Namespace) -> Callable[[ChatModel], ChatState]:
    """What makes a chat of the model, once that is loaded; the files that it begins with are read now.

    It begins with the conversation and the options of `--load`, and over them those that are typed.
    """
    from kaiwa.chat import history
    from kaiwa.terminal import examples
    from kaiwa.terminal.state import ChatState

    folder = paths.chats() if arguments.save_folder is None else Path(arguments.save_folder).expanduser()
    questions = examples.EXAMPLES
    if arguments.examples_path is not None:
        questions = examples.read(Path(arguments.examples_path).expanduser())
    saved = None if arguments.load is None else history.load(history.find(arguments.load, folder))

    def begin(model: ChatModel) -> ChatState:
        state = ChatState(model, user=arguments.user, folder=folder, examples=questions)
        if saved is not None:
            state.chat, state.options = saved.chat, saved.options_beside(model.sampling)
        if arguments.system is not None:
            state.chat = state.chat.with_system(arguments.system)
        state.options |= request.options
        return state

    return begin


def _talk(request: Request, begin: Callable[[ChatModel], ChatState], arguments: argparse.Namespace) -> None:
    with _load(request, arguments, meanwhile=_import_session) as model:
        from kaiwa.terminal.line_editor import LineEditor
        from kaiwa.terminal.screen import Screen
        from kaiwa.terminal.session import Session

        state = begin(model)
        Session(state, Screen(), LineEditor(paths.history(), state)).run()


def _import_session() -> None:
    import kaiwa.terminal.session  # noqa: F401  the slow imports, while the model loads


def _answer(request: Request, begin: Callable[[ChatModel], ChatState], arguments: argparse.Namespace) -> None:
    from kaiwa.terminal import pipe

    question = pipe.read_question()
    with _load(request, arguments) as model:
        state = begin(model)
        pipe.answer(model, state.chat.asked(question), state.options)


def _load(
    request: Request, arguments: argparse.Namespace, *, meanwhile: Callable[[], None] | None = None
) -> LLM | RemoteModel:
    from kaiwa.terminal import loading

    _check_url(arguments)

    def work(on_progress: Callable[[Any], None]) -> LLM | RemoteModel:
        if arguments.url is not None:
            from kaiwa.chat.remote import RemoteModel

            return RemoteModel(arguments.url, model=request.model or "")
        from kaiwa.runtime.llm import LLM

        named: dict[str, Any] = {} if request.model is None else {"model": request.model}
        return LLM(
            **named,
            **engine_options(arguments),
            engine=arguments.engine or "auto",
            on_progress=on_progress,
        )

    return loading.load(work, meanwhile=meanwhile)


def _check_url(arguments: argparse.Namespace) -> None:
    """Raises `InvalidOption` for what is the server's to decide."""
    for name in ("threads", "context", "quantization", "kv_dtype", "engine"):
        if arguments.url is not None and getattr(arguments, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidOption(f"{flag} is for models on this machine", hint=f"leave out --url or {flag}")
