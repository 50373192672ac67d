"""Chat completions through the `openai` client, against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from openai import APIError, BadRequestError, NotFoundError

from kaiwa.engines.engine import Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.errors import NumericalError
from live import MODEL, Live, serve
from small_model import END

HELLO = [{"role": "user", "content": "Hello, 世界 🎉"}]


def test_a_whole_answer(echo: Live) -> None:
    with echo.openai() as client:
        answer = client.chat.completions.create(model=MODEL, messages=HELLO)
    assert (answer.object, answer.model) == ("chat.completion", MODEL)
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "Hello, 世界 🎉")
    assert choice.finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.completion_tokens == len("Hello, 世界 🎉".encode()) + 1


def test_a_streamed_answer_is_the_whole_one_in_pieces(echo: Live) -> None:
    with echo.openai() as client:
        chunks = list(
            client.chat.completions.create(
                model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
            )
        )
    first, *_, finish, usage = chunks
    assert first.choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello, 世界 🎉"
    assert finish.choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert (usage.choices, usage.usage.completion_tokens) == ([], len("Hello, 世界 🎉".encode()) + 1)
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_bytes_of_a_stream(echo: Live) -> None:
    response = echo.ask(stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, end = response.text.split("\n\n")
    assert end == ""
    assert events[-1] == "data: [DONE]"
    for event in events[:-1]:
        chunk = json.loads(event.removeprefix("data: "))
        assert chunk["object"] == "chat.completion.chunk"
        assert "usage" not in chunk


def test_the_last_answer_is_cached_for_the_next_turn(echo: Live) -> None:
    with echo.openai() as client:
        first = client.chat.completions.create(model=MODEL, messages=HELLO)
        turns = [*HELLO, first.choices[0].message.model_dump(), {"role": "user", "content": "And now?"}]
        second = client.chat.completions.create(model=MODEL, messages=turns)
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens


def test_several_choices(echo: Live) -> None:
    with echo.openai() as client:
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, n=3, seed=2**63 - 1)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        assert {choice.message.content for choice in answer.choices} == {"Hello, 世界 🎉"}
        assert answer.usage.completion_tokens == 3 * (len("Hello, 世界 🎉".encode()) + 1)
        texts = ["", "", ""]
        for chunk in client.chat.completions.create(model=MODEL, messages=HELLO, n=3, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == ["Hello, 世界 🎉"] * 3


@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({"max_completion_tokens": 3}, "Hel", "length"),
        ({"max_tokens": 3}, "Hel", "length"),
        ({"stop": "lo"}, "Hel", "stop"),
        ({"stop": ["world", ","]}, "Hello", "stop"),
    ],
)
def test_where_an_answer_ends(echo: Live, options: dict[str, object], text: str, reason: str) -> None:
    with echo.openai() as client:
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, **options)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (text, reason)


def test_every_option_of_sampling_is_taken(echo: Live) -> None:
    options = {"temperature": 0, "top_p": 0.9, "presence_penalty": 1, "frequency_penalty": -1, "seed": 7, "user": None}
    more = {"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1}
    with echo.openai() as client:
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, **options, extra_body=more)
    assert answer.choices[0].finish_reason == "stop"


def test_content_in_parts(echo: Live) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    assert echo.ask(messages=[{"role": "user", "content": parts}]).json()["choices"][0]["message"]["content"] == "Hello"


def test_many_at_once_each_get_their_own_answer(echo: Live) -> None:
    async def main() -> None:
        async with echo.async_openai() as client:

            async def ask(number: int) -> str:
                question = [{"role": "user", "content": f"question {number}"}]
                stream = await client.chat.completions.create(model=MODEL, messages=question, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            answers = await asyncio.gather(*(ask(number) for number in range(20)))
        assert answers == [f"question {number}" for number in range(20)]

    asyncio.run(main())


def test_what_does_not_fit_is_refused_with_the_numbers(echo: Live) -> None:
    long = [{"role": "user", "content": "x" * 5000}]
    with echo.openai() as client:
        for stream in (False, True):
            with pytest.raises(BadRequestError, match=r"5,019 tokens.*4,096") as caught:
                client.chat.completions.create(model=MODEL, messages=long, stream=stream)
            assert caught.value.code == "context_length_exceeded"
            assert caught.value.param == "messages"


def test_an_unknown_model_offers_the_nearest(echo: Live) -> None:
    with echo.openai() as client, pytest.raises(NotFoundError, match="did you mean 'small'") as caught:
        client.chat.completions.create(model="smal", messages=HELLO)
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"temprature": 1}, "unknown_parameter", "temprature"),
        ({"temperature": "1"}, "invalid_type", "temperature"),
        ({"temperature": True}, "invalid_type", "temperature"),
        ({"top_p": 0}, "invalid_value", "top_p"),
        ({"n": 0}, "invalid_value", "n"),
        ({"n": 17}, "invalid_value", "n"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "incompatible_parameters", "max_tokens"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": [{"content": "Hi"}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": "wizard", "content": "Hi"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "invalid_type", "messages[0].content"),
        ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
        ({"messages": [{"role": "assistant"}]}, "incompatible_parameters", "messages[0].content"),
        ({"messages": [{"role": "user", "content": "Hi", "image": "x"}]}, "unknown_parameter", "messages[0].image"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]},
            "unsupported_parameter",
            "messages[0].content[0].image_url",
        ),
        ({"functions": []}, "unsupported_parameter", "functions"),
        ({"store": True}, "invalid_value", "store"),
        ({"metadata": {"a": "b"}}, "unsupported_parameter", "metadata"),
        ({"stream_options": {"include_usage": True}}, "incompatible_parameters", "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, "unknown_parameter", "stream_options.usage"),
        ({"top_logprobs": 3}, "incompatible_parameters", "top_logprobs"),
        ({"tool_choice": "required"}, "incompatible_parameters", "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "incompatible_parameters", "response_format.json_schema"),
        ({"stop": [""]}, "invalid_value", "stop[0]"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    echo: Live, fields: dict[str, object], code: str, param: str | None
) -> None:
    response = echo.ask(**fields)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error["code"], error["param"]) == (code, param), error["message"]


def test_null_means_not_given(echo: Live) -> None:
    fields = ("temperature", "stop", "n", "stream", "stream_options", "tools", "tool_choice", "functions", "metadata")
    assert echo.ask(**dict.fromkeys(fields)).status_code == 200


class Breaks(ScriptedEngine):
    """An engine whose numbers go wrong at its fourth step."""

    def step(self, batch: Sequence[Slice]) -> list[Any]:
        if len(self.steps) == 3:
            raise NumericalError("the logits are not numbers")
        return super().step(batch)


def test_a_model_that_fails_in_the_middle_says_so() -> None:
    with serve(Breaks(lambda ids: [*b"abcdef"], end_id=END, vocab_size=258)) as live:
        response = live.ask(stream=True)
        assert response.status_code == 200
        last = json.loads(response.text.split("\n\n")[-2].removeprefix("data: "))
        assert last["error"]["message"] == "the logits are not numbers"
        assert "[DONE]" not in response.text
        with live.openai() as client, pytest.raises(APIError, match="the logits are not numbers"):
            list(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
        response = live.ask()
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
