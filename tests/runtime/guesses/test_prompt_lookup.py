"""Prompt lookup against a search through the whole context."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.runtime.guesses import prompt_lookup
from kaiwa.runtime.guesses.prompt_lookup import NUM_TOKENS, PromptLookup


def searched(token_ids: list[int], most: int) -> list[int]:
    """What followed the last run of tokens like those at the end, the longer run first."""
    for length in NUM_TOKENS:
        for start in range(len(token_ids) - 1, length - 1, -1):
            if token_ids[start - length : start] == token_ids[-length:]:
                period = token_ids[start:]
                return (period * most)[:most]
    return []


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 10), st.integers(1, 40))
def test_it_finds_what_a_search_finds(token_ids: list[int], most: int, begin: int) -> None:
    context = token_ids[:begin]
    lookup = PromptLookup(context)
    for token_id in [*token_ids[begin:], None]:
        guesses, num_same = lookup.guess(most)
        assert guesses == searched(context, most)
        assert (num_same >= min(NUM_TOKENS)) == bool(guesses)
        if token_id is not None:
            context.append(token_id)


def test_a_quote_is_recognized_by_its_length() -> None:
    text = [*range(20), 99, *range(10)]
    assert PromptLookup(text).guess(3) == ([10, 11, 12], 10)
    assert PromptLookup([*text, 5, 9, 7]).guess(3)[1] == 0
    assert PromptLookup([5, 6, 5, 6, 5, 6]).guess(5)[0] == [5, 6, 5, 6, 5], "what repeats goes on repeating"


def test_a_long_prompt_is_taken_in_over_some_steps() -> None:
    size = prompt_lookup.MAX_INDEXED
    text = [*range(2 * size), 10, 11, 12, 13]
    lookup = PromptLookup(text)
    assert [lookup.guess(2)[0] for _ in range(3)] == [[], [], [14, 15]]
