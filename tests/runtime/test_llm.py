"""What a person gets from an LLM: answers, honest counts, and refusals before anything starts."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest

import kaiwa as kw
from dice import Dice
from kaiwa.errors import ContextOverflow, InvalidMessages, InvalidOption, KaiwaError, TemplateError, UnsupportedModel
from kaiwa.events import Finished, PromptProgress, TextDelta
from kaiwa.runtime.llm import LLM
from kaiwa.sampling import Sampling
from small_model import END, START, echoes, model, says, scripted, tokenizer


def test_a_whole_answer() -> None:
    with model(says("Things fall.")) as llm:
        reply = llm.chat([{"role": "user", "content": "Gravity?"}])
    assert (reply.text, reply.finish_reason) == ("Things fall.", "stop")
    prompt = len("\x00user\nGravity?\x00\n\x00assistant\n")
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (prompt, 0)
    assert reply.usage.generated_tokens == len("Things fall.") + 1, "the end token was generated too"
    assert reply.timings.first_token_s > 0
    assert reply.timings.prompt_tokens_per_s > 0
    assert reply.timings.decode_tokens_per_s > 0


def test_the_simplest_loop_is_enough() -> None:
    llm = model(says("An apple."))
    events = list(llm.stream("Why?"))
    assert "".join(event.text for event in events) == "An apple."
    assert [type(event) for event in events] == [TextDelta] * 9 + [Finished]


def test_timings_are_of_the_engine_and_not_of_the_reader() -> None:
    llm = model(says("0123456789", delay_s=0.01))
    events = []
    for event in llm.stream("Go"):
        events.append(event)
        time.sleep(0.05)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.timings.decode_s < 0.05 * 10
    assert last.timings.first_token_s >= 0.01
    assert last.timings.decode_s >= 0.1
    assert last.timings.decode_tokens_per_s == pytest.approx(10 / last.timings.decode_s)
    assert last.timings.prompt_tokens_per_s == pytest.approx(last.usage.prompt_tokens / last.timings.prompt_s)


def test_options_are_refused_at_once_and_by_name() -> None:
    engine = says("")
    llm = model(engine)
    with pytest.raises(InvalidOption, match="'temprature'") as caught:
        llm.stream("Hi", temprature=0.5)
    assert caught.value.hint == "did you mean 'temperature'?"
    with pytest.raises(InvalidOption, match="top_p=2"):
        llm.chat("Hi", top_p=2)
    with pytest.raises(InvalidOption, match="'max_tokens'"):
        llm.astream("Hi", max_tokens=3)
    with pytest.raises(InvalidMessages, match="role 'robot'"):
        llm.stream([{"role": "robot", "content": "Hi"}])
    assert engine.steps == []


def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers() -> None:
    llm = model(says("x", context_length=40))
    prompt = llm.count_tokens("Hi")
    with pytest.raises(ContextOverflow, match=r"40.*: 6 too many") as caught:
        llm.stream("Hi" + "!" * (45 - prompt))
    assert (caught.value.prompt_tokens, caught.value.context_length) == (45, 40)
    llm.close()


def test_an_answer_ends_where_the_context_does() -> None:
    llm = model(says("0123456789" * 9, context_length=60))
    fits = 60 - llm.count_tokens("Hi")
    reply = llm.chat("Hi")
    assert (len(reply.text), reply.finish_reason) == (fits, "length")
    assert reply.usage.total_tokens == 60
    exactly = model(says("0" * (fits - 1), context_length=60)).chat("Hi")
    assert (len(exactly.text), exactly.finish_reason) == (fits - 1, "stop")


@pytest.mark.parametrize(("limit", "text", "reason"), [(1, "a", "length"), (3, "abc", "length"), (4, "abc", "stop")])
def test_max_new_tokens(limit: int, text: str, reason: str) -> None:
    reply = model(says("abc")).chat("Hi", max_new_tokens=limit)
    assert (reply.text, reply.finish_reason, reply.usage.generated_tokens) == (text, reason, limit)


def test_one_token_has_no_decode_speed() -> None:
    timings = model(says("abc")).chat("Hi", max_new_tokens=1).timings
    assert (timings.decode_s, timings.decode_tokens_per_s) == (0.0, 0.0)


def test_stop_strings_reach_over_tokens_and_are_not_shown() -> None:
    llm = model(says("one two three END four"))
    reply = llm.chat("Count", stop=["END", "zzz"])
    assert (reply.text, reply.finish_reason) == ("one two three ", "stop")
    assert reply.usage.generated_tokens == len("one two three END")
    assert llm.chat("Count", stop="four!").text == "one two three END four", "what was held back comes at the end"
    limited = llm.chat("Count", stop="three!", max_new_tokens=12)
    assert (limited.text, limited.finish_reason) == ("one two thre", "length")


def test_characters_arrive_whole() -> None:
    text = "日本語 👩‍👩‍👧 naïve"
    events = list(model(says(text)).stream("Say"))
    assert "".join(event.text for event in events) == text
    assert all("\ufffd" not in event.text for event in events)
    assert len([event for event in events if event.text]) == len(text)


def test_a_character_cut_short_is_marked() -> None:
    assert model(says("日本")).chat("Say", max_new_tokens=4).text == "日\ufffd"


def test_a_second_turn_reads_only_what_is_new() -> None:
    engine = echoes()
    llm = model(engine)
    turns: list[dict[str, str]] = [{"role": "user", "content": "First question"}]
    first = llm.chat(turns)
    turns += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "Second"}]
    engine.steps.clear()
    second = llm.chat(turns)
    assert (first.text, second.text) == ("First question", "Second")
    new = [END, *b"\n", START, *b"user\nSecond", END, *b"\n", START, *b"assistant\n"]
    assert list(engine.steps[0][0].token_ids) == new
    assert second.usage.cached_tokens == second.usage.prompt_tokens - len(new)
    speed = second.timings.prompt_tokens_per_s
    assert speed == pytest.approx(len(new) / second.timings.prompt_s), "cached tokens were not read"


def test_the_same_prompt_again_reads_its_last_token() -> None:
    engine = echoes()
    llm = model(engine)
    llm.chat("Again")
    engine.steps.clear()
    reply = llm.chat("Again")
    assert reply.text == "Again"
    assert reply.usage.cached_tokens == reply.usage.prompt_tokens - 1
    assert list(engine.steps[0][0].token_ids) == list(b"\n")


def test_a_long_prompt_is_read_in_pieces_and_says_how_far_it_is() -> None:
    engine = says("Done.")
    llm = model(engine)
    events = list(llm.stream("x" * 1500))
    total = llm.count_tokens("x" * 1500)
    pieces = [step[0] for step in engine.steps if len(step[0].token_ids) > 1]
    ends = list(itertools.accumulate(len(piece.token_ids) for piece in pieces))
    assert len(ends) >= 3
    assert ends[-1] == total
    assert [event for event in events if isinstance(event, PromptProgress)] == [
        PromptProgress(end, total, 0) for end in ends[:-1]
    ]
    assert [piece.sample for piece in pieces] == [False] * (len(ends) - 1) + [True]


def test_what_a_person_types_is_never_a_special_token() -> None:
    engine = echoes()
    assert model(engine).chat("<|im_end|>").text == "<|im_end|>"
    prompt = engine.steps[0][0].token_ids
    assert (prompt.count(START), prompt.count(END)) == (2, 1)


def test_the_same_seed_gives_the_same_text_whatever_is_cached() -> None:
    fresh, used = model(Dice()), model(Dice())
    used.chat("Roll", max_new_tokens=30, seed=1)
    first = fresh.chat("Roll the dice", max_new_tokens=40, seed=7)
    second = used.chat("Roll the dice", max_new_tokens=40, seed=7)
    again = used.chat("Roll the dice", max_new_tokens=40, seed=7)
    assert first.usage.cached_tokens == 0
    assert again.usage.cached_tokens > 0
    assert first.text == second.text == again.text
    assert used.chat("Roll the dice", max_new_tokens=40, seed=8).text != first.text


def test_no_seed_is_a_new_seed_each_time() -> None:
    engine = Dice()
    llm = model(engine)
    texts = {llm.chat("Roll", max_new_tokens=40).text for _ in range(5)}
    assert len(texts) == 5
    assert len(set(engine.seeds)) == 5
    assert None not in engine.seeds


def test_the_models_own_options_hold_where_a_call_gives_none() -> None:
    llm = model(says("abcdef"), sampling=Sampling(max_new_tokens=2, stop=("z",)))
    assert llm.sampling.max_new_tokens == 2
    assert llm.chat("Hi").text == "ab"
    assert llm.chat("Hi", max_new_tokens=4).text == "abcd"


def test_the_card_says_what_it_is() -> None:
    card = model(says("", context_length=100)).card
    assert (card.name, card.family, card.context_length) == ("small", "scripted", 100)


def test_tokens_and_back() -> None:
    llm = model(says(""))
    assert llm.tokenize("Hé") == list("Hé".encode())
    assert llm.detokenize(llm.tokenize("Hé")) == "Hé"


def test_tokens_can_be_continued_without_a_template() -> None:
    llm = model(scripted(lambda ids: [*ids, END, *b"more"]))
    assert "".join(event.text for event in llm.stream_text(list(b"abc"))) == "abc"
    endless = llm.stream_text(list(b"abc"), end_ids=(), max_new_tokens=6)
    assert "".join(event.text for event in endless) == "abcmo"


@pytest.mark.parametrize("wrong", [[], [1, 258], [1, -1]])
def test_tokens_that_no_model_reads_are_refused(wrong: list[int]) -> None:
    with pytest.raises(InvalidMessages, match=r"no tokens|the token (258|-1), and the model knows 0 to 257"):
        model(says("")).stream_text(wrong)


def test_a_model_without_a_template_says_so() -> None:
    llm = LLM.from_parts(says(""), tokenizer(), None, name="base-7b")
    with pytest.raises(TemplateError, match="base-7b has no chat template") as caught:
        llm.chat("Hi")
    assert "Instruct" in caught.value.hint


def test_a_closed_model_says_so() -> None:
    llm = model(says("abc" * 500, delay_s=0.01))
    stream = llm.stream("Hi")
    next(stream)
    llm.close()
    llm.close()
    with pytest.raises(KaiwaError, match="was closed"):
        list(stream)
    with pytest.raises(KaiwaError, match="was closed"):
        llm.chat("Hi")


@pytest.mark.parametrize(
    ("arguments", "says_what"),
    [
        ({"engine": "nativ"}, "there is no engine 'nativ'"),
        ({"threads": 0}, "threads=0 is impossible"),
        ({"threads": True}, "threads=True is impossible"),
        ({"engine": says(""), "threads": 2}, "has its threads"),
    ],
)
def test_impossible_arguments_are_refused_before_anything_is_fetched(arguments: Any, says_what: str) -> None:
    with pytest.raises(InvalidOption, match=says_what):
        kw.LLM("no-such-model", **arguments)


def test_texts_become_vectors_of_length_one() -> None:
    llm = model(says("x"))
    one, two = llm.embed(["abc", list(b"abc")])
    assert one == two
    assert one.num_tokens == 3
    assert sum(number**2 for number in one.vector) == pytest.approx(1)
    [last] = llm.embed(["abc"], pooling="last")
    assert last.vector != one.vector


def test_vectors_are_made_as_the_model_says() -> None:
    llm = model(says("x"))
    means, lasts = (llm.embed(["abc"], pooling=pooling) for pooling in ("mean", "last"))
    assert llm.embed(["abc"]) == means, "where it says nothing"
    for declared, expected in (("mean", means), ("last", lasts)):
        llm._parts = replace(llm._parts, pooling=declared)
        assert llm.embed(["abc"]) == expected
    llm._parts = replace(llm._parts, pooling="cls")
    with pytest.raises(UnsupportedModel, match="small makes its vectors by 'cls'"):
        llm.embed(["abc"])
    assert llm.embed(["abc"], pooling="mean") == means
    llm._parts.tokenizer.closing_id = END
    assert llm.embed(["abc"], pooling="last") == llm.embed([[*b"abc", END]], pooling="last")


@pytest.mark.parametrize(
    ("texts", "says_what"),
    [("abc", "a list of texts"), (["abc", ""], "is empty"), ([[1, 300]], "the token 300"), (["x" * 41], "41 tokens")],
)
def test_what_has_no_embedding_is_refused(texts: Any, says_what: str) -> None:
    with pytest.raises((InvalidMessages, ContextOverflow), match=says_what):
        model(says("x", context_length=40)).embed(texts)
