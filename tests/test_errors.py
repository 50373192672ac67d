"""Errors cross between processes as they are."""

from __future__ import annotations

import copy
import pickle

import pytest

from kaiwa import errors
from kaiwa.errors import KaiwaError

MADE = [
    errors.InvalidOption("there is no option 'x'", hint="leave it out"),
    errors.ContextOverflow(50, 40),
    errors.UnusableFile("x.gguf", "GGUF", "it is cut short", hint="download it again"),
    errors.UnsupportedFormat("x.gguf", "GGUF", "it holds Q9_X"),
    errors.Busy(3, 1.5),
    errors.EngineCrashed("it was killed", exit_code=-9),
    errors.OutOfMemory("the cache is full", hint="close other sequences"),
    errors.NumericalError("the model computed NaN"),
    errors.MissingExtra("it needs torch", hint="pip install torch"),
]


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_type_words_and_all_that_an_error_knows_cross(error: KaiwaError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))
