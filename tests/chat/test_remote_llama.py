"""A model on llama.cpp's own server: a second implementation of the API, with a real model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaiwa.chat.remote import RemoteModel
from kaiwa.errors import ContextOverflow, RemoteFailed
from kaiwa.events import Finished, TextDelta
from llama_server import KEY, llama_server


@pytest.fixture(scope="module")
def url(model_path: Path) -> Iterator[str]:
    with llama_server(model_path) as url:
        yield url


@pytest.fixture
def model(url: str) -> Iterator[RemoteModel]:
    with RemoteModel(url, api_key=KEY, do_sample=False) as model:
        yield model


def test_a_conversation(model: RemoteModel) -> None:
    chat = [{"role": "user", "content": "Repeat after me: Paris, Berlin, Rome"}]
    reply = model.chat(chat, max_new_tokens=12)
    assert "Paris" in reply.text
    assert reply.usage.prompt_tokens == model.count_tokens(chat) > 20
    assert reply.usage.generated_tokens <= 12
    assert reply.timings.decode_tokens_per_s > 0
    assert (model.card.context_length, model.card.num_parameters) == (1024, 134_515_008)
    assert asyncio.run(model.achat(chat, max_new_tokens=12)).text == reply.text
    assert model.chat(chat, max_new_tokens=2).finish_reason == "length"


def test_raw_text_and_logprobs(model: RemoteModel) -> None:
    text = "".join(event.text for event in model.stream_text("1, 2, 3, 4, 5, 6,", max_new_tokens=3))
    assert text.startswith(" 7")
    first = next(event for event in model.stream("Hi", num_logprobs=3, max_new_tokens=2) if event.text)
    assert isinstance(first, TextDelta)
    assert first.logprobs[0].token_id >= 0
    assert len(first.logprobs[0].best) == 3


def test_tokens_and_their_text(model: RemoteModel) -> None:
    token_ids = model.tokenize("Grüße, <|im_end|> 世界")
    assert model.detokenize(token_ids) == "Grüße, <|im_end|> 世界"
    assert len(token_ids) > 8  # what looks like a special token is text
    with pytest.raises(RemoteFailed, match="embeddings"):
        model.embed(["Hi"])


def test_stopping_frees_the_server(model: RemoteModel) -> None:
    events = model.stream("Write a very long story about a dragon.", max_new_tokens=900)
    assert next(events).text
    events.cancel()
    *_, last = events
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    started = time.monotonic()
    model.chat("Hi", max_new_tokens=1)
    assert time.monotonic() - started < 5


def test_a_prompt_that_does_not_fit(model: RemoteModel) -> None:
    with pytest.raises(ContextOverflow) as caught:
        model.chat("many words " * 2000)
    assert caught.value.context_length == 1024
    assert caught.value.prompt_tokens > 4000


def test_a_wrong_key(url: str) -> None:
    with pytest.raises(RemoteFailed, match="401"):
        RemoteModel(url, api_key="wrong")
