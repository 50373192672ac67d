"""The older completions, embeddings and tokens through the `openai` client, against a real server."""

from __future__ import annotations

import array
import base64
from collections.abc import Iterator

import pytest
from openai import BadRequestError

from live import MODEL, Live, serve
from small_model import scripted


@pytest.fixture
def live() -> Iterator[Live]:
    """A server whose model says a text again in capitals, without knowing conversations."""
    with serve(scripted(lambda ids: list(bytes(ids).upper()))) as live:
        yield live


def test_a_whole_text(live: Live) -> None:
    with live.openai() as client:
        answer = client.completions.create(model=MODEL, prompt="once", max_tokens=3)
    [choice] = answer.choices
    assert (answer.object, choice.text, choice.finish_reason) == ("text_completion", "ONC", "length")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (4, 3)


def test_sixteen_tokens_are_the_default_as_elsewhere(live: Live) -> None:
    with live.openai() as client:
        assert len(client.completions.create(model=MODEL, prompt="x" * 50).choices[0].text) == 16
        assert len(client.completions.create(model=MODEL, prompt="x" * 50, max_tokens=None).choices[0].text) == 50


def test_a_streamed_text(live: Live) -> None:
    with live.openai() as client:
        chunks = list(
            client.completions.create(model=MODEL, prompt="once", stream=True, stream_options={"include_usage": True})
        )
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == "ONCE"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
def test_several_prompts_and_choices_with_echo(live: Live, stream: bool) -> None:
    options = {"prompt": ["ab", "cd"], "n": 2, "echo": True}
    with live.openai() as client:
        answer = client.completions.create(model=MODEL, **options, stream=stream)
        texts = ["", "", "", ""]
        for part in answer if stream else [answer]:
            for choice in part.choices:
                texts[choice.index] += choice.text
    assert texts == ["abAB", "abAB", "cdCD", "cdCD"]


def test_prompts_of_tokens(live: Live) -> None:
    with live.openai() as client:
        one = client.completions.create(model=MODEL, prompt=list(b"abc"), echo=True)
        two = client.completions.create(model=MODEL, prompt=[list(b"abc"), list(b"de")])
    assert [choice.text for choice in one.choices] == ["abcABC"]
    assert [choice.text for choice in two.choices] == ["ABC", "DE"]


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs(live: Live, stream: bool) -> None:
    with live.openai() as client:
        answer = client.completions.create(model=MODEL, prompt="ab", logprobs=1, stream=stream)
        parts = list(answer) if stream else [answer]
    found = [part.choices[0].logprobs for part in parts if part.choices and part.choices[0].logprobs]
    assert [token for one in found for token in one.tokens] == ["A", "B"]
    assert [place for one in found for place in one.text_offset] == [0, 1]
    assert [best for one in found for best in one.top_logprobs] == [{"A": 0.0}, {"B": 0.0}]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"suffix": "end"}, "unsupported_parameter"),
        ({"best_of": 2}, "unsupported_parameter"),
        ({"prompt": []}, "invalid_value"),
        ({"prompt": [[]]}, "invalid_value"),
        ({"prompt": [-1]}, "invalid_value"),
        ({"prompt": ["a", 1]}, "invalid_type"),
        ({"echo": True, "logprobs": 1}, "incompatible_parameters"),
        ({"prompt": [9999]}, "invalid_value"),
    ],
)
def test_what_cannot_be_honoured(live: Live, fields: dict[str, object], code: str) -> None:
    response = live.post("/v1/completions", {"model": MODEL, "prompt": "x", **fields})
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


def test_embeddings(live: Live) -> None:
    with live.openai() as client:
        answer = client.embeddings.create(model=MODEL, input=["abc", "d"])  # the client asks for base64
        [tokens] = client.embeddings.create(model=MODEL, input=list(b"abc"), encoding_format="float").data
        [floats] = client.embeddings.create(model=MODEL, input="abc", encoding_format="float").data
    assert [one.index for one in answer.data] == [0, 1]
    assert answer.usage.prompt_tokens == 4
    assert tokens.embedding == floats.embedding
    assert answer.data[0].embedding == pytest.approx(floats.embedding, abs=1e-6)
    raw = live.post("/v1/embeddings", {"model": MODEL, "input": "abc", "encoding_format": "base64"}).json()
    assert array.array("f", base64.b64decode(raw["data"][0]["embedding"])).tolist() == pytest.approx(floats.embedding)


def test_embeddings_of_what_is_no_text(live: Live) -> None:
    with live.openai() as client, pytest.raises(BadRequestError, match="9999"):
        client.embeddings.create(model=MODEL, input=[1, 9999, 3])
    with live.openai() as client, pytest.raises(BadRequestError, match="dimensions"):
        client.embeddings.create(model=MODEL, input="a", dimensions=3)


def test_tokens_there_and_back(live: Live) -> None:
    tokens = live.post("/tokenize", {"model": MODEL, "text": "<|im_start|> 世"}).json()
    assert tokens == {"tokens": list("<|im_start|> 世".encode()), "count": 16}
    assert live.post("/detokenize", {"model": MODEL, **tokens}).json()["error"]["param"] == "count"
    assert live.post("/detokenize", {"model": MODEL, "tokens": [*tokens["tokens"], 256]}).json() == {
        "text": "<|im_start|> 世<|im_start|>"
    }
