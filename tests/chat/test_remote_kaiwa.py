"""A model on Kaiwa's own server: what one half says, the other understands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import kaiwa as kw
from kaiwa.chat.remote import RemoteModel
from kaiwa.errors import ContextOverflow, InvalidOption, ModelNotFound
from kaiwa.events import Finished
from live import KEY, Live, serve
from small_model import echoes, says


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with serve(echoes(delay_s=0.001)) as live:
        with RemoteModel(live.url, api_key=KEY) as model:
            model.embed(["first"])  # starts the thread in which the server counts tokens, which stays
        yield live


@pytest.fixture
def model(live: Live) -> Iterator[RemoteModel]:
    with RemoteModel(live.url, api_key=KEY) as model:
        yield model


def test_a_conversation(model: RemoteModel) -> None:
    reply = model.chat([{"role": "system", "content": "Repeat."}, {"role": "user", "content": "Grüße, 世界!"}])
    assert (reply.text, reply.finish_reason) == ("Grüße, 世界!", "stop")
    assert reply.usage.prompt_tokens > 20
    assert asyncio.run(model.achat("Hi")).text == "Hi"
    assert model.chat("many words", max_new_tokens=4, temperature=0.5, top_k=3, seed=1, stop="word").text == "many"
    assert (model.card.name, model.card.context_length) == ("small", 4096)


def test_counts_and_the_end_of_the_context(model: RemoteModel) -> None:
    reply = model.chat("Hello")
    assert model.count_tokens("Hello") == reply.usage.prompt_tokens
    with pytest.raises(ContextOverflow) as caught:
        model.chat("x" * 5000)
    assert caught.value.context_length == 4096
    assert caught.value.prompt_tokens > 5000


def test_vectors(model: RemoteModel) -> None:
    both = model.embed(["one text", "another"])
    assert [len(embedding.vector) for embedding in both] == [len(both[0].vector)] * 2
    (alone,) = model.embed(["one text"])
    assert list(alone.vector) == pytest.approx(list(both[0].vector), abs=1e-5)
    assert sum(number * number for number in alone.vector) == pytest.approx(1)
    assert alone.num_tokens == 8


def test_leaving_frees_the_server(model: RemoteModel) -> None:
    events = model.stream("a long story " * 200)
    assert next(event for event in events if event.text).text
    events.cancel()
    *_, last = events
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    assert model.chat("Hi").text == "Hi"


def test_a_pipeline_through_the_server(live: Live) -> None:
    with kw.pipeline(model=live.url, model_kwargs={"api_key": KEY}) as generate:
        answers = generate([[{"role": "user", "content": word}] for word in ("one", "two", "three")])
        assert [answer[0]["generated_text"][-1]["content"] for answer in answers] == ["one", "two", "three"]
        begun = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well, "}]
        assert generate(begun)[0]["generated_text"][-1]["content"].startswith("Well, ")


def test_mistakes(live: Live, model: RemoteModel) -> None:
    with pytest.raises(ModelNotFound, match="has no model 'smal'"):
        RemoteModel(live.url, api_key=KEY, model="smal")
    with pytest.raises(InvalidOption, match="temprature"):
        model.chat("Hi", temprature=1)


def test_thoughts_come_apart() -> None:
    with serve(says("<think>Hm.</think>Yes.")) as live, RemoteModel(live.url, api_key=KEY) as model:
        reply = model.chat("Sure?")
    assert reply.text.endswith("Yes.")
