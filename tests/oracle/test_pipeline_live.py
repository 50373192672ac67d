"""Tools out of functions, and what the golden file says of the pipeline, beside transformers of today."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from transformers.utils import get_json_schema, logging

import write_pipeline_golden
from compat.test_function_schema import many, weather
from kaiwa.compat.transformers.function_schema import schema_of

pytestmark = pytest.mark.oracle
logging.disable_progress_bar()  # a bar leaves a thread behind


@pytest.mark.parametrize("function", [weather, many])
def test_a_function_is_the_same_tool(function: Callable[..., Any]) -> None:
    assert schema_of(function) == get_json_schema(function)


def test_golden_answers_are_what_transformers_says_today() -> None:
    expected = json.loads((write_pipeline_golden.FOLDER / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(write_pipeline_golden.answers())) == expected
