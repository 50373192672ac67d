"""The options of sampling: what may be said, what is refused and by which words, and what a model's own say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.errors import InvalidOption
from kaiwa.sampling import GROUPS, OPTIONS, Sampling, parse_assignment


def test_every_option_is_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(option.name for option in OPTIONS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("do_sample=False", ("do_sample", False)),
        ("max_new_tokens=10", ("max_new_tokens", 10)),
        ("max_new_tokens=None", ("max_new_tokens", None)),
        ("top_p=.9", ("top_p", 0.9)),
        ("temperature=1", ("temperature", 1.0)),
        ("top-k=40", ("top_k", 40)),
        ("stop=END", ("stop", ("END",))),
        ("stop=['a', 'b=c']", ("stop", ("a", "b=c"))),
        ("logit_bias=42:-100, 7:2.5", ("logit_bias", {42: -100.0, 7: 2.5})),
        ("logit_bias={42: 1}", ("logit_bias", {42: 1.0})),
        ("logit_bias={}", ("logit_bias", {})),
    ],
)
def test_assignments(text: str, expected: tuple[str, Any]) -> None:
    assert parse_assignment(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("temprature=1", "no option 'temprature'"),
        ("temperature", "not an option"),
        ("temperature=hot", "temperature='hot'"),
        ("temperature=nan", "temperature=nan"),
        ("temperature=-1", "temperature=-1"),
        ("top_p=0", "top_p=0"),
        ("top_k=1.5", "top_k=1.5"),
        ("do_sample=maybe", "do_sample='maybe'"),
        ("max_new_tokens=0", "max_new_tokens=0"),
        ("seed=-1", "seed=-1"),
        ("stop=", "stop=''"),
        ("logit_bias=42", "logit_bias='42'"),
        ("logit_bias=42:101", "logit_bias={42: 101.0}"),
        ("logit_bias=-1:1", "logit_bias={-1: 1.0}"),
        ("logit_bias=1:nan", "logit_bias={1: nan}"),
    ],
)
def test_refusals_name_the_value_and_say_what_to_do(text: str, words: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        parse_assignment(text)
    assert words in str(refusal.value)
    assert refusal.value.hint


def test_a_near_name_is_offered() -> None:
    with pytest.raises(InvalidOption) as refusal:
        Sampling().updated({"max_tokens": 3})
    assert "max_new_tokens" in refusal.value.hint


def test_every_option_is_a_field_with_a_default() -> None:
    assert list(Sampling().to_dict()) == [option.name for option in OPTIONS]


def test_a_model_that_says_nothing_gets_the_table_and_one_that_does_its_own() -> None:
    assert Sampling.from_generation_config({"eos_token_id": 2}) == Sampling()
    own = Sampling.from_generation_config({"do_sample": True, "temperature": 0.6, "top_k": 20, "transformers": "5"})
    assert (own.temperature, own.top_k) == (0.6, 20)
    assert Sampling.from_generation_config({"do_sample": False}).is_greedy


def test_json_has_texts_for_token_ids() -> None:
    assert Sampling(logit_bias={"42": -1}).logit_bias == {42: -1.0}  # type: ignore[dict-item]
    with pytest.raises(InvalidOption, match="logit_bias=\\[1\\]"):
        Sampling(logit_bias=[1])  # type: ignore[arg-type]
    with pytest.raises(InvalidOption):
        Sampling(logit_bias=dict.fromkeys(range(1025), 1.0))


@given(st.floats(0, 100), st.integers(0, 2**40), st.none() | st.integers(0, 2**63 - 1))
def test_what_is_shown_can_be_typed(temperature: float, top_k: int, seed: int | None) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, seed=seed)
    typed = [parse_assignment(f"{name}={value}") for name, value in sampling.to_dict().items() if name != "stop"]
    assert Sampling().updated(dict(typed)) == sampling
