"""A load within the memory that several models share: it asks first, and takes no more than it asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.errors import OutOfMemory
from kaiwa.runtime.loading.budget import Budget, within

MB = 1_000_000


@pytest.mark.parametrize(
    ("most_mb", "share_mb", "context"),
    [
        (1000, 1000, range(8192, 8193)),  # what the model was made for
        (1000, 250, range(4096, 8192)),  # its share
        (1000, 150, range(8192, 8193)),  # a share that leaves no room to converse
        (1000, 50, range(8192, 8193)),  # a share that is smaller than the weights
        (150, 150, range(256, 4096)),  # there is no more
    ],
)
def test_the_context_is_as_long_as_the_memory_of_all_allows(
    model_path: Path, most_mb: int, share_mb: int, context: range
) -> None:
    asked: list[int] = []
    with within(Budget(most_mb * MB, share_mb * MB, asked.append)), kw.LLM(model_path) as llm:
        assert llm.card.context_length in context
        assert len(asked) == 1
        assert llm.card.weights_bytes + llm.card.cache_bytes < asked[0] <= most_mb * MB


def test_without_limits_a_model_has_room_for_as_many_chats_as_one_that_is_alone(model_path: Path) -> None:
    asked: list[int] = []
    with within(Budget(None, None, asked.append)), kw.LLM(model_path, context_length=256) as llm:
        cache_tokens = llm._parts.engine.info.cache_tokens
    assert len(asked) == 1
    with kw.LLM(model_path, context_length=256) as alone:
        assert alone._parts.engine.info.cache_tokens == cache_tokens > 256


def test_what_does_not_fit_the_memory_of_all_is_refused_with_the_arithmetic(model_path: Path) -> None:
    asked: list[int] = []
    budget = Budget(120 * MB, 120 * MB, asked.append)
    with within(budget), pytest.raises(OutOfMemory, match="120 MB are free") as caught:
        kw.LLM(model_path, context_length=4096)
    assert "context_length=" in caught.value.hint
    assert asked == []


def test_a_load_that_is_not_admitted_ends(model_path: Path) -> None:
    def refuse(num_bytes: int) -> None:
        raise OutOfMemory("no room")

    with within(Budget(None, None, refuse)), pytest.raises(OutOfMemory, match="no room"):
        kw.LLM(model_path)
    with kw.LLM(model_path, context_length=256) as llm:
        assert llm.card.context_length == 256, "the budget is that of one block only"
