"""The `kaiwa` command: finds the file of a subcommand and runs it.

A subcommand is a module of this package with `SUMMARY`, `configure(parser)` and `run(arguments)`, which returns the
exit code. Its imports happen inside `run`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, cast

import kaiwa
from kaiwa import cli
from kaiwa.errors import InvalidMessages, InvalidOption, KaiwaError, ModelNotFound, did_you_mean
from kaiwa.sampling import OPTIONS

FAILURE = 1
MISTAKE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
_MISTAKES = (InvalidOption, InvalidMessages, ModelNotFound)


class Command(Protocol):
    """What a subcommand's module offers."""

    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class Parser(argparse.ArgumentParser):
    """An argument parser that speaks as the rest of Kaiwa does."""

    def error(self, message: str) -> NoReturn:
        raise InvalidOption(message, hint=f"{self._near(message)}{self.prog} -h explains the arguments")

    def _near(self, message: str) -> str:
        """The nearest flag, where the message is about one that does not exist."""
        words = message.removeprefix("unrecognized arguments: ").split()
        if len(words) == len(message.split()) or not words or not words[0].startswith("-"):
            return ""
        flag = words[0].partition("=")[0]
        if (name := flag.lstrip("-").replace("-", "_")) in (option.name for option in OPTIONS):
            return f"{name} is written {name}=…, without dashes, and for `kaiwa chat` only; "
        near = did_you_mean(flag, self._option_string_actions)
        return f"{near}; " if near.startswith("did") else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kaiwa` with these arguments, by default those of the process; the exit code.

    0 is success, 1 a failure, 2 a person's mistake, 130 an interruption, 141 a reader that went away.
    """
    try:
        code = _dispatch(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except KaiwaError as error:
        print_error(error)
        return MISTAKE if isinstance(error, _MISTAKES) else FAILURE
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _interrupted() -> int:
    """The exit code of an interruption, or the end of the process at once where a model is still loading."""
    if threading.active_count() > 1:
        # A thread in the midst of C++ cannot be stopped, and Python must not be taken down around it.
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    return INTERRUPTED


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def add_engine_arguments(parser: argparse._ActionsContainer) -> None:
    """How a model on this machine is held in memory."""
    from kaiwa.weights.quantize import RECIPES

    add = parser.add_argument
    add("--threads", metavar="N", type=positive, help="processor threads (default: as many as help)")
    add("--context", metavar="N", type=positive, help="context in tokens (default: the model's own)")
    add("--quantization", metavar="NAME", help=f"round the weights as they load: {', '.join(RECIPES)} (default: no)")
    add(
        "--kv-dtype",
        metavar="NAME",
        help="hold keys and values in float16, float32 or int8 (default: what fits the weights)",
    )


def engine_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same as options of `LLM`; None is what is left to the model and the machine."""
    return {
        "threads": arguments.threads,
        "context_length": arguments.context,
        "quantization": arguments.quantization,
        "kv_dtype": arguments.kv_dtype,
    }


def print_error(error: KaiwaError) -> None:
    """What happened and what to do about it, on standard error."""
    print(f"error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help", "help"):
        print(_help())
        return 0
    if first in ("-V", "--version"):
        print(f"kaiwa {kaiwa.__version__}")
        return 0
    if first not in command_names():
        kind = "flag" if first.startswith("-") else "command"
        known = ["--help", "--version"] if kind == "flag" else command_names()
        raise InvalidOption(f"there is no {kind} {first!r}", hint=did_you_mean(first, known))
    command = _command(first)
    parser = Parser(
        prog=f"kaiwa {first}",
        description=command.SUMMARY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    return command.run(parser.parse_intermixed_args(arguments[1:]))


def command_names() -> list[str]:
    """The subcommands: one for each module of this package but this one."""
    return sorted(module.name for module in pkgutil.iter_modules(cli.__path__) if module.name != "main")


def _command(name: str) -> Command:
    return cast(Command, importlib.import_module(f"kaiwa.cli.{name}"))


def _help() -> str:
    rows = "\n".join(f"  kaiwa {name:8} {_command(name).SUMMARY}" for name in command_names())
    return f"""Chat with language models on your own machine.

{rows}

  kaiwa COMMAND -h   explains a command
  kaiwa --version    says which Kaiwa this is"""


if __name__ == "__main__":
    sys.exit(main())
