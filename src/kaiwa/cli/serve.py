"""`kaiwa serve`: models for other programs, over HTTP."""

from __future__ import annotations

import argparse
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from kaiwa.cli.main import add_engine_arguments, engine_options, positive
from kaiwa.errors import InvalidOption

if TYPE_CHECKING:
    from kaiwa.runtime.pool.model_pool import ModelPool
    from kaiwa.server.settings import ServerSettings

SUMMARY = "Answer other programs over HTTP: OpenAI's and Anthropic's APIs."
KEY_VARIABLE = "KAIWA_API_KEY"
_ALIAS = re.compile(r"([\w.:/-]+)=(.+)")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from kaiwa.runtime.loading.loader import DEFAULT_MODEL, ENGINES
    from kaiwa.server.settings import DEFAULT_HOST, DEFAULT_PORT, MAX_REQUESTS

    add = parser.add_argument
    add(
        "models",
        nargs="*",
        metavar="MODEL",
        help=f"names or paths of models, or NAME=MODEL to call one NAME (default: {DEFAULT_MODEL})",
    )
    add("--host", default=DEFAULT_HOST, help=f"the address to listen on (default: {DEFAULT_HOST}, this machine only)")
    add("--port", type=_port, default=DEFAULT_PORT, help=f"the port; 0 is any that is free (default: {DEFAULT_PORT})")
    add(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help=f"what clients must know; may be given several times (default: ${KEY_VARIABLE}, several between commas)",
    )
    add("--allow-origin", action="append", default=[], metavar="URL", help="let web pages of this origin in")
    add("--allow-host", action="append", default=[], metavar="NAME", help="a name that this machine is called by")
    add("--max-models", type=positive, metavar="N", help="how many models may be in memory at once (default: no limit)")
    add("--memory", type=_bytes, metavar="SIZE", help="what models may take together, e.g. 12G (default: what is free)")
    add("--keep-alive", type=_seconds, metavar="TIME", help="unload a model unused so long, e.g. 10m (default: never)")
    add("--preload", action="append", default=[], metavar="NAME", help="load at the start (default: the first MODEL)")
    add("--max-requests", type=positive, metavar="N", default=MAX_REQUESTS, help=_MAX_REQUESTS_HELP)
    add_engine_arguments(parser)
    add("--engine", metavar="NAME", default="auto", help=f"what runs the models: {', '.join(ENGINES)} (default: auto)")
    add("--cache-dir", metavar="FOLDER", help="keep what was read of conversations over a restart, up to 4 GiB a model")
    add("--log-format", choices=["text", "json"], default="text", help="how requests are logged (default: text)")


_MAX_REQUESTS_HELP = "how many requests may be answered or wait at once (default: %(default)s)"


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    import asyncio

    models = named(arguments.models)
    _check(models, arguments.preload)
    settings = _settings(arguments)
    with _pool(models, arguments) as pool:
        for name in arguments.preload or list(models)[:1]:
            # Begun before the slow imports, which take as long as a small model.
            threading.Thread(target=_preload, args=(pool, name), name=f"kaiwa-preload-{name}", daemon=True).start()
        from kaiwa.server import logs
        from kaiwa.server.app import create_app
        from kaiwa.server.run import Running

        logs.configure(arguments.log_format)
        running = Running(create_app(pool, settings), settings)
        print(f"kaiwa serves {', '.join(models)} at {running.url}/v1 (what it answers: {running.url}/docs)", flush=True)
        asyncio.run(running.serve())
    if running.force_exit:
        raise KeyboardInterrupt
    return 0


def _preload(pool: ModelPool, name: str) -> None:
    from kaiwa.cli.main import print_error
    from kaiwa.errors import Cancelled, KaiwaError

    try:
        with pool.using(name):
            pass
    except Cancelled:  # the server ends already
        pass
    except KaiwaError as error:  # the server stays up, and the next who asks tries again
        print_error(error)


def named(words: list[str]) -> dict[str, str]:
    """The models by the names that requests call them by.

    Raises `InvalidOption` for a name that is given twice.
    """
    from kaiwa.runtime.loading.loader import DEFAULT_MODEL

    models: dict[str, str] = {}
    for word in words or [DEFAULT_MODEL]:
        alias = _ALIAS.fullmatch(word)
        name, model = (alias[1], alias[2]) if alias and not Path(word).exists() else (_short(word), word)
        if name in models:
            raise InvalidOption(f"two models are called {name!r}", hint="give one of them another name: NAME=MODEL")
        models[name] = model
    return models


def _short(model: str) -> str:
    """The last part of a path; other names as they are."""
    return Path(model).name if Path(model).exists() else model


def _check(models: dict[str, str], preload: list[str]) -> None:
    """What would fail for sure when it is asked for fails now."""
    from kaiwa.chat.address import is_address
    from kaiwa.errors import did_you_mean
    from kaiwa.weights import hub

    for name in preload:
        if name not in models:
            raise InvalidOption(f"--preload names {name!r}, which is not served", hint=did_you_mean(name, models))
    for model in models.values():
        if not is_address(model):
            hub.check(model)


def _settings(arguments: argparse.Namespace) -> ServerSettings:
    from kaiwa.server.settings import ServerSettings

    keys = arguments.api_key or [key.strip() for key in os.environ.get(KEY_VARIABLE, "").split(",")]
    return ServerSettings(
        host=arguments.host,
        port=arguments.port,
        api_keys=tuple(key for key in keys if key),
        allowed_origins=tuple(arguments.allow_origin),
        allowed_hosts=tuple(arguments.allow_host),
        max_requests=arguments.max_requests,
    )


def _pool(models: dict[str, str], arguments: argparse.Namespace) -> ModelPool:
    from kaiwa.chat.address import is_address
    from kaiwa.runtime.pool.model_pool import ModelPool
    from kaiwa.runtime.process.model_process import isolated

    pool = ModelPool(max_models=arguments.max_models, memory_bytes=arguments.memory, keep_alive_s=arguments.keep_alive)
    here = {**engine_options(arguments), "engine": arguments.engine, "cache_dir": arguments.cache_dir}
    # Where the variable has the keys of this server, they are not for others to know.
    elsewhere = {} if arguments.api_key else {"api_key": ""}
    for name, model in models.items():
        pool.add(name, isolated(model, **(elsewhere if is_address(model) else here)))
    return pool


def _port(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _bytes(text: str) -> int:
    """`12G`, `800M` or a number of bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.lower())
    if not match or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 12G or 800M")
    return int(float(match[1]) * _UNITS[match[2]])


def _seconds(text: str) -> float:
    """`90`, `90s`, `10m` or `2h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
