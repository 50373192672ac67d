"""A model that another server has: asked through ours, in all words that ours knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kaiwa.runtime.process.model_process import at
from live import MODEL, Live, serve
from small_model import echoes, says

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def near() -> Iterator[Live]:
    """A server whose model another one has."""
    with serve(echoes()) as far, serve(echoes(), load=at(f"{far.url}/v1")) as near:
        yield near


def test_it_answers_in_the_words_of_every_api(near: Live) -> None:
    with near.openai() as client:
        reply = client.chat.completions.create(model=MODEL, messages=HELLO)
        assert (reply.choices[0].message.content, reply.usage and reply.usage.completion_tokens) == ("Hello", 6)
        pieces = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "Hello"
        assert client.responses.create(model=MODEL, input="Hello").output_text == "Hello"
    with near.anthropic() as client:
        said = client.messages.create(model=MODEL, messages=HELLO, max_tokens=100)
        assert said.content[0].text == "Hello"
        num_prompt = said.usage.input_tokens + (said.usage.cache_read_input_tokens or 0)
        assert client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens == num_prompt


@pytest.mark.parametrize(
    ("path", "fields"),
    [("/tokenize", {"text": "Hello"}), ("/detokenize", {"tokens": [1]})],
)
def test_what_only_the_other_server_has_is_refused(near: Live, path: str, fields: dict[str, object]) -> None:
    refused = near.post(path, {"model": MODEL, **fields})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_model")


def test_vectors_come_from_there(near: Live) -> None:
    several = near.post("/v1/embeddings", {"model": MODEL, "input": ["Hello", "there"]}).json()
    assert [len(row["embedding"]) for row in several["data"]] == [len(several["data"][0]["embedding"])] * 2
    assert several["usage"]["prompt_tokens"] == 10


def test_a_server_that_is_gone_is_told() -> None:
    with serve(says("Hi")) as far, serve(says("Hi"), load=at(f"{far.url}/v1", max_retries=0)) as near:
        assert near.ask().status_code == 200
        far.running.should_exit = True
        while far.running.started and near.ask().status_code == 200:
            pass
        failed = near.ask()
        assert (failed.status_code, failed.json()["error"]["code"]) == (502, "model_server_failed")
