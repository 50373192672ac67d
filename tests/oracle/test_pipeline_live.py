"""Tools out of functions, and what the golden file says of the pipeline, beside transformers of today."""

from __future__ import annotations

import json

import pytest
from transformers.utils import get_json_schema, logging

import write_pipeline_golden
from documented_functions import FUNCTIONS
from kaiwa.chat.tool_schema import describe

pytestmark = pytest.mark.oracle
logging.disable_progress_bar()  # a bar leaves a thread behind


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_the_same_tool(name: str) -> None:
    assert describe(FUNCTIONS[name]) == get_json_schema(FUNCTIONS[name])


def test_golden_answers_are_what_transformers_says_today() -> None:
    expected = json.loads((write_pipeline_golden.FOLDER / "expected.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(write_pipeline_golden.answers())) == expected
