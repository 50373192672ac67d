"""`kaiwa run`: serve a chat app, or without one chat in the browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kaiwa.errors import InvalidOption

if TYPE_CHECKING:
    from pathlib import Path

    from kaiwa.apps.definition import Definition

SUMMARY = "Serve a chat app in the browser."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.usage = (
        "kaiwa run [APP.py] [-w] [--host HOST] [--port PORT] [--headless] [--allow-anyone]\n"
        "                 [--allow-host NAME] [--root-path PATH] [--database URL]"
    )
    parser.add_argument("app", nargs="?", metavar="APP.py", help="the app's file (default: a chat with your models)")
    parser.add_argument("-w", "--watch", action="store_true", help="read the app's code again when it changes")
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="the address (default: this machine only)")
    parser.add_argument("--port", default=8000, type=_port, metavar="PORT", help="the port; 0 is any (default: 8000)")
    parser.add_argument("--headless", action="store_true", help="open no browser")
    parser.add_argument(
        "--allow-anyone", action="store_true", help="let other machines in although nobody has to log in"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name by which browsers may reach the app"
    )
    parser.add_argument("--root-path", default="", metavar="PATH", help="the path below which a proxy shows the app")
    parser.add_argument(
        "--database", metavar="URL", help="where chats are kept, such as postgresql://… (default: a file of SQLite)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until the person ends it."""
    import logging
    from functools import partial
    from pathlib import Path

    from kaiwa.apps.serving import Settings, serve

    logging.basicConfig(format="%(levelname)s: %(message)s")
    path = None if arguments.app is None else Path(arguments.app)
    if path is None and arguments.watch:
        raise InvalidOption("-w watches an app's file, and none is given", hint="kaiwa run APP.py -w")
    settings = Settings(
        host=arguments.host,
        port=arguments.port,
        is_headless=arguments.headless,
        allow_anyone=arguments.allow_anyone,
        allowed_hosts=arguments.allow_host,
        root_path=arguments.root_path.rstrip("/"),
        database_url=arguments.database,
        watched=path if arguments.watch else None,
    )
    load = partial(_load, path)
    serve(load(), _folder(path), settings, reload=load if path else None)
    return 0


def _load(path: Path | None) -> Definition:
    if path is None:
        from kaiwa.apps.builtin import make_app

        return make_app()
    from kaiwa.apps.app_file import load_app

    return load_app(path)


def _folder(path: Path | None) -> Path:
    """Where the app's chats are: a folder of its own for each file."""
    import hashlib

    from kaiwa import paths

    if path is None:
        return paths.apps() / "kaiwa"
    place = str(path.expanduser().resolve())
    return paths.apps() / f"{path.stem}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 to 65535")
    return int(text)
