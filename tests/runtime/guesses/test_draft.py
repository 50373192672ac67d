"""A smaller model that writes ahead: fewer steps, the same answers, whatever it says and however its tokens look."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice import Dice
from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.errors import InvalidOption
from kaiwa.runtime.llm import LLM
from kaiwa.text.tokens.special_tokens import SpecialTokens
from kaiwa.text.tokens.tokenizer import Tokenizer
from small_model import END, model, says

ANSWER = "Nobody could have guessed these words from what was asked, not even once."


class Pairs:
    """A vocabulary whose tokens are one byte or two letters."""

    size = 256 + 26 * 26

    def segment(self, text: str, place: object) -> list[int]:
        ids, content = [], text.encode()
        while content:
            pair = content[:2]
            is_pair = len(pair) == 2 and all(97 <= byte < 123 for byte in pair)
            ids.append(256 + (pair[0] - 97) * 26 + pair[1] - 97 if is_pair else content[0])
            content = content[2:] if is_pair else content[1:]
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        if token_id < 256:
            return bytes([token_id])
        return bytes(97 + part for part in divmod(token_id - 256, 26))


class Continuing(ScriptedEngine):
    """Asks for its answer after each token, so that it can go back."""

    def _next(self, part: Slice) -> int:
        answer = self._answer(tuple(self._tokens[part.sequence]))
        return answer[0] if answer else self._end_id


def pairs_model(text: str) -> LLM:
    tokenizer = Tokenizer(Pairs(), SpecialTokens([]), bos_id=None, eos_id=None, end_ids=frozenset(), adds_bos=False)

    def answer(ids: Sequence[int]) -> list[int]:
        said = tokenizer.decode(ids).rpartition("assistant\n")[2]
        return tokenizer.encode(text.removeprefix(said)) if text.startswith(said) else []

    engine = Continuing(answer, end_id=0, vocab_size=Pairs.size)
    return LLM.from_parts(engine, tokenizer, None, speculation=False)


def continues(text: str) -> ScriptedEngine:
    """An engine that says the rest of a text, whatever of it was said already."""

    def answer(ids: Sequence[int]) -> list[int]:
        said = bytes(token for token in ids if token < 256).decode().rpartition("assistant\n")[2]
        return list(text.removeprefix(said).encode()) if text.startswith(said) else []

    return Continuing(answer, end_id=END, vocab_size=258)


def test_a_good_assistant_saves_steps_and_a_bad_one_costs_few() -> None:
    for guessed, most in ((ANSWER, 0.5), ("xxxxxxxxxx" * 10, 1.01)):
        engine = says(ANSWER, delay_s=0.002)
        with model(continues(guessed)) as assistant:
            with model(engine, speculation=True, assistant_model=assistant) as llm:
                assert llm.chat("Speak").text == ANSWER
            assert not assistant._parts.engine._tokens, "its memory is given back"
        assert len(engine.steps) <= most * (len(ANSWER) + 1)


def test_an_assistant_of_one_answer() -> None:
    engine = says(ANSWER, delay_s=0.002)
    with model(continues(ANSWER)) as assistant, model(engine, speculation=True) as llm:
        assert llm.chat("Speak", assistant_model=assistant).text == ANSWER
        assert len(engine.steps) <= 0.5 * (len(ANSWER) + 1)
        with pytest.raises(InvalidOption, match="is none that is loaded"):
            llm.chat("Speak", assistant_model="smollm2:135m")


def test_an_assistant_with_other_tokens() -> None:
    engine = says(ANSWER, delay_s=0.002)
    with pairs_model(ANSWER) as assistant, model(engine, speculation=True, assistant_model=assistant) as llm:
        assert llm.chat("Speak").text == ANSWER
    assert len(engine.steps) < len(ANSWER) * 0.7


def test_an_assistant_that_is_closed_or_full_is_done_without() -> None:
    assistant = model(continues(ANSWER))
    with model(says(ANSWER), speculation=True, assistant_model=assistant) as llm:
        assert llm.chat("Speak").text == ANSWER
        assistant.close()
        assert llm.chat("Speak again").text == ANSWER
    with (
        model(ScriptedEngine(lambda ids: [], end_id=0, vocab_size=258, cache_tokens=10)) as full,
        model(says(ANSWER), speculation=True, assistant_model=full) as llm,
    ):
        assert llm.chat("Speak").text == ANSWER


@pytest.mark.parametrize("has_other_tokens", [False, True])
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32), temperature=st.sampled_from([0.0, 1.0]))
def test_no_answer_changes(has_other_tokens: bool, seed: int, temperature: float) -> None:
    options = {"seed": seed, "temperature": temperature, "max_new_tokens": 40}
    assistant = pairs_model("abcdefgh" * 20) if has_other_tokens else model(Dice(sides=4))
    with (
        assistant,
        model(Dice(sides=4), speculation=True, assistant_model=assistant) as fast,
        model(Dice(sides=4)) as plain,
    ):
        assert fast.chat("ab", **options).text == plain.chat("ab", **options).text
