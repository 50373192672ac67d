"""The default model through the whole path: file, tokenizer, template, engine, text."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kaiwa as kw
from kaiwa.errors import InvalidOption, TemplateError
from kaiwa.events import Finished, Progress

QUESTION = [{"role": "user", "content": "Hey, can you explain gravity to me?"}]


@pytest.fixture(scope="module")
def llm(model_path: Path) -> Iterator[kw.LLM]:
    with kw.LLM(model_path, context_length=1024) as llm:
        yield llm


strangers = map(str, itertools.count())


def afresh(llm: kw.LLM, messages: Any, **options: Any) -> kw.Reply:
    """The answer that somebody gets who has asked nothing before."""
    return llm.chat(messages, client=f"stranger {next(strangers)}", **options)


def test_it_answers_in_words(llm: kw.LLM) -> None:
    reply = llm.chat(QUESTION, max_new_tokens=40, do_sample=False, client="one")
    assert "gravity" in reply.text.lower()
    assert "<|" not in reply.text
    assert (reply.finish_reason, reply.usage.generated_tokens) == ("length", 40)


def test_it_ends_by_itself(llm: kw.LLM) -> None:
    reply = llm.chat("Say only the word yes.", do_sample=False, client="one")
    assert reply.finish_reason == "stop"
    assert reply.usage.total_tokens < 1024


def test_a_second_turn_reads_only_what_is_new(llm: kw.LLM) -> None:
    first = llm.chat(QUESTION, max_new_tokens=40, do_sample=False, client="one")
    turns = [*QUESTION, {"role": "assistant", "content": first.text}, {"role": "user", "content": "Thanks!"}]
    second = llm.chat(turns, max_new_tokens=5, do_sample=False, client="one")
    known = first.usage.total_tokens - 1  # the last token was sampled, and not yet read
    assert second.usage.cached_tokens == known
    other = afresh(llm, turns, max_new_tokens=5, do_sample=False)
    assert (other.text, other.usage.cached_tokens) == (second.text, 0)


def test_a_seed_fixes_the_text_with_and_without_the_cache(llm: kw.LLM) -> None:
    options = {"do_sample": True, "temperature": 0.8, "top_p": 0.95, "max_new_tokens": 24}
    other = llm.chat("Something else", seed=1, client="one", **options)
    llm.chat(QUESTION, seed=3, client="one", **options)
    cached = llm.chat(QUESTION, seed=3, client="one", **options)
    uncached = afresh(llm, QUESTION, seed=3, **options)
    assert cached.usage.cached_tokens == cached.usage.prompt_tokens - 1
    assert uncached.usage.cached_tokens == 0
    assert cached.text == uncached.text
    assert cached.text != other.text
    assert len({llm.chat(QUESTION, client="one", **options).text for _ in range(4)}) > 1


def test_stopping_and_asking_again(llm: kw.LLM) -> None:
    stream = llm.stream(QUESTION, do_sample=False, client="one")
    begun = "".join(next(stream).text for _ in range(8))
    stream.close()
    assert llm.chat(QUESTION, do_sample=False, client="one", max_new_tokens=20).text.startswith(begun)


def test_from_an_event_loop(llm: kw.LLM) -> None:
    async def main() -> None:
        replies = await asyncio.gather(
            *(llm.achat(QUESTION, max_new_tokens=8, do_sample=False, client="one") for _ in range(3)),
        )
        assert len({reply.text for reply in replies}) == 1
        events = [event async for event in llm.astream(QUESTION, max_new_tokens=8, do_sample=False, client="one")]
        assert "".join(event.text for event in events) == replies[0].text
        assert isinstance(events[-1], Finished)

    asyncio.run(main())


def test_its_card(llm: kw.LLM) -> None:
    card = llm.card
    assert (card.family, card.number_format, card.context_length) == ("llama", "Q4_1", 1024)
    assert card.num_parameters == 134_515_008
    assert card.cache_bytes == 1024 * 23_040


def test_loading_tells_how_far_it_is_and_refuses_what_cannot_be(model_path: Path) -> None:
    seen: list[Progress] = []
    kw.LLM(model_path, context_length=64, on_progress=seen.append).close()
    assert seen[-1].done == seen[-1].total > 0
    with pytest.raises(InvalidOption, match="context_length=9,000"):
        kw.LLM(model_path, context_length=9000)


def test_it_answers_in_json(llm: kw.LLM) -> None:
    schema = {
        "type": "object",
        "properties": {
            "planet": {"enum": ["Earth", "Mars"]},
            "moons": {"type": "integer", "maximum": 99, "minimum": 0},
        },
        "required": ["planet", "moons"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "planet", "schema": schema}}
    for options in ({"do_sample": False}, {"temperature": 2.0, "seed": 1}):
        reply = llm.chat("Which planet has two moons?", response_format=wanted, **options)
        value = json.loads(reply.text)
        assert value["planet"] in ("Earth", "Mars")
        assert 0 <= value["moons"] <= 99
        assert reply.finish_reason == "stop"


def test_it_calls_no_tools(llm: kw.LLM) -> None:
    with pytest.raises(TemplateError, match="no place for tools"):
        llm.chat("Hi", tools=[{"name": "get_weather"}])


def test_a_conversation_goes_on_after_a_restart(model_path: Path, tmp_path: Path) -> None:
    question = "Tell me about the sea. " * 20
    replies = []
    for _ in range(2):
        with kw.LLM(model_path, context_length=512, cache_dir=tmp_path) as llm:
            replies.append(llm.chat(question, max_new_tokens=12, do_sample=False))
    first, second = replies
    assert (first.usage.cached_tokens, second.usage.cached_tokens) == (0, second.usage.prompt_tokens - 1)
    assert first.text == second.text


def test_guesses_and_company_change_no_answer(model_path: Path) -> None:
    copy = "Copy this: a crow, the wires between two poles, a crow, the wires between two poles, and the sky."
    options = {"max_new_tokens": 48, "temperature": 0.4, "seed": 5}
    with kw.LLM(model_path, context_length=512, speculation=False) as plain:
        alone = [plain.chat(question, client=question, **options).text for question in (copy, "Why is the sky blue?")]
    with kw.LLM(model_path, context_length=512) as llm:
        streams = [llm.stream(question, client=question, **options) for question in (copy, "Why is the sky blue?")]
        assert ["".join(event.text for event in stream) for stream in streams] == alone
        assert llm.chat(copy, client="afresh", **options).text == alone[0]


def test_embeddings_have_room_beside_what_is_kept(model_path: Path) -> None:
    with kw.LLM(model_path, context_length=256) as llm:
        for number in range(6):
            llm.chat(f"question {number} " * 20, max_new_tokens=4)
        [one, two] = llm.embed(["The sea is blue. " * 40, "A crow."])
        assert len(one.vector) == len(two.vector) == 576
        assert llm.chat("Hi", max_new_tokens=4).usage.generated_tokens == 4
