"""Which code is the app's own, and not of Kaiwa, of Python or of a package: errors name a line of it."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from traceback import walk_tb
from types import FrameType

import kaiwa

_NOT_THE_APP = (
    *{str(Path(path).resolve()) for path in sysconfig.get_paths().values()},
    str(Path(kaiwa.__file__).parent),
    "<",  # of Python itself: <frozen importlib._bootstrap>
)


def is_of_the_app(frame: FrameType) -> bool:
    """Whether a frame runs code of the app."""
    return not frame.f_code.co_filename.startswith(_NOT_THE_APP)


def line_of(frame: FrameType, number: int) -> str:
    """Where a frame is, as people read it: `file:line, in function`."""
    return f"{frame.f_code.co_filename}:{number}, in {frame.f_code.co_qualname}"


def line_that_raised(error: BaseException) -> str | None:
    """The innermost line of the app that an error went through."""
    lines = [line_of(frame, number) for frame, number in walk_tb(error.__traceback__) if is_of_the_app(frame)]
    return lines[-1] if lines else None
