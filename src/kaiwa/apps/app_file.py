"""App files: a Python file is run, and what it registers is an app."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from kaiwa.apps.definition import Definition, as_default
from kaiwa.errors import InvalidApp, did_you_mean


def load_app(path: Path) -> Definition:
    """The app of a file: the `App` that it makes, or the default one with the hooks that it registers.

    The file's folder is where it may import from. Loading it again reads it and what it imports from there anew.

    Raises `InvalidApp` where there is no such file, it fails, or registers nothing.
    """
    path = path.expanduser().resolve()
    if not path.is_file():
        near = [entry.name for entry in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise InvalidApp(f"there is no file {path}", hint=did_you_mean(path.name, near) if near else "check the path")
    _read_from(path.parent)
    with as_default(Definition(path.stem.replace("_", " ").replace("-", " ").capitalize())) as default:
        module = _run(path)
    made = {id(value): value for value in vars(module).values() if isinstance(value, Definition)}
    candidates = [app for app in (*made.values(), default) if app.hooks]
    if not candidates:
        raise InvalidApp(
            f"{path} registers no hooks, so that it would answer nothing",
            hint="put @kw.on_message above a function, and import kaiwa as kw",
        )
    if len(candidates) > 1:
        names = ", ".join(repr(app.name) for app in candidates)
        raise InvalidApp(
            f"{path} makes several apps: {names}",
            hint="serve one of them with kaiwa run, or mount them by app.asgi() into a program of your own",
        )
    app = candidates[0]
    app.models = [*default.models, *(model for model in app.models if model not in default.models)]
    return app


def _run(path: Path) -> ModuleType:
    name = path.stem if path.stem.isidentifier() else "app"
    spec = importlib.util.spec_from_file_location(f"kaiwa_app_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look their module up
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InvalidApp(f"{_place(path, error)}: {_what(error)}", hint=getattr(error, "hint", "")) from error
    return module


def _place(path: Path, error: BaseException) -> str:
    """The line of the app's own code that failed last."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(path.parent))]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)


def _what(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


_folders: list[Path] = []
"""Where apps were read from so far; the last one is where modules are looked for first."""


def _read_from(folder: Path) -> None:
    """Let modules be imported from this folder, and those that came from an app's folder be read again."""
    if folder not in _folders:
        _folders.append(folder)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name != "__main__" and any(Path(file).is_relative_to(one) for one in _folders):
            del sys.modules[name]
    sys.path[:] = [str(folder), *(entry for entry in sys.path if entry != str(folder))]
