"""OpenAI's responses through its client, against a real server."""

from __future__ import annotations

import asyncio

import pytest
from openai import BadRequestError, NotFoundError

from live import KEY, MODEL, Live, serve
from small_model import echoes

IMAGE = {"type": "input_image", "image_url": "x"}


def test_a_whole_response(echo: Live) -> None:
    with echo.openai() as client:
        response = client.responses.create(model=MODEL, input="Hello, 世界", metadata={"a": "b"})
    assert (response.status, response.output_text, response.metadata) == ("completed", "Hello, 世界", {"a": "b"})
    [item] = response.output
    assert (item.type, item.role, item.status) == ("message", "assistant", "completed")
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_streamed_response(echo: Live) -> None:
    with echo.openai() as client, client.responses.stream(model=MODEL, input="Hello, 世界") as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello, 世界"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert list(dict.fromkeys(event.type for event in events)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert response.output_text == "Hello, 世界"


def test_async(echo: Live) -> None:
    async def main() -> None:
        async with echo.async_openai() as client:
            assert (await client.responses.create(model=MODEL, input="Hello")).output_text == "Hello"
            events = await client.responses.create(model=MODEL, input="Hello", stream=True)
            assert [event.type async for event in events][-1] == "response.completed"

    asyncio.run(main())


def test_going_on_after_an_earlier_response(echo: Live) -> None:
    with echo.openai() as client:
        first = client.responses.create(model=MODEL, input="one", instructions="Be brief.")
        second = client.responses.create(model=MODEL, input="two", previous_response_id=first.id)
        third = client.responses.create(model=MODEL, input="three", previous_response_id=second.id, store=False)
        # one turn of each: <|im_start|>, a role, a line break, the words, <|im_end|>, a line break
        assert second.usage.input_tokens > first.usage.input_tokens
        assert third.usage.input_tokens > second.usage.input_tokens
        assert third.usage.input_tokens_details.cached_tokens > 0
        assert client.responses.retrieve(second.id).output_text == "two"
        with pytest.raises(NotFoundError):
            client.responses.retrieve(third.id)
        client.responses.delete(first.id)
        with pytest.raises(BadRequestError) as caught:
            client.responses.create(model=MODEL, input="x", previous_response_id=first.id)
        assert caught.value.code == "previous_response_not_found"


def test_a_streamed_response_is_kept_too(echo: Live) -> None:
    with echo.openai() as client:
        with client.responses.stream(model=MODEL, input="one") as stream:
            response = stream.get_final_response()
        assert client.responses.retrieve(response.id).output_text == "one"


def test_items_of_all_kinds(echo: Live) -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "What is 2 + 2?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 2}', "id": "fc_1"},
        {"type": "function_call_output", "call_id": "c", "output": "4"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4", "annotations": []}]},
        {"role": "user", "content": "Well?"},
    ]
    with echo.openai() as client:
        assert client.responses.create(model=MODEL, input=items).output_text == "Well?"


def test_the_output_of_a_response_goes_in_again(echo: Live) -> None:
    with echo.openai() as client:
        first = client.responses.create(model=MODEL, input="one")
        items = [{"role": "user", "content": "one"}, *first.output, {"role": "user", "content": "two"}]
        stateless = client.responses.create(model=MODEL, input=items)
        stateful = client.responses.create(model=MODEL, input="two", previous_response_id=first.id)
    assert stateless.usage.input_tokens == stateful.usage.input_tokens


def test_an_answer_that_is_cut_is_incomplete(echo: Live) -> None:
    with echo.openai() as client:
        response = client.responses.create(model=MODEL, input="Hello", max_output_tokens=3)
        with client.responses.stream(model=MODEL, input="Hello", max_output_tokens=3) as stream:
            last = list(stream)[-1]
    assert (response.status, response.output_text) == ("incomplete", "Hel")
    assert response.incomplete_details.reason == "max_output_tokens"
    assert last.type == "response.incomplete"


def test_logprobs(echo: Live) -> None:
    with echo.openai() as client:
        response = client.responses.create(
            model=MODEL, input="Hi", include=["message.output_text.logprobs"], top_logprobs=1
        )
    [content] = response.output[0].content
    assert [one.token for one in content.logprobs] == ["H", "i"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"inputs": "x"}, "unknown_parameter"),
        ({"input": []}, "invalid_value"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "invalid_value"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "unsupported_parameter",
        ),
        ({"background": True}, "invalid_value"),
        ({"truncation": "auto"}, "invalid_value"),
        ({"conversation": "conv_1"}, "unsupported_parameter"),
        ({"tools": [{"type": "web_search"}]}, "invalid_value"),
        ({"top_logprobs": 2}, "incompatible_parameters"),
        ({"previous_response_id": "resp_1"}, "previous_response_not_found"),
        ({"text": {"format": {"type": "json_schema"}}}, "incompatible_parameters"),
        ({"input": "x" * 5000}, "context_length_exceeded"),
    ],
)
def test_what_cannot_be_honoured(echo: Live, fields: dict[str, object], code: str) -> None:
    response = echo.post("/v1/responses", {"model": MODEL, "input": "Hello", **fields})
    assert (response.status_code, response.json()["error"]["code"]) == (400, code), response.text


def test_another_key_sees_nothing() -> None:
    with (
        serve(echoes(), api_keys=(KEY, "another-key")) as live,
        live.openai() as mine,
        live.openai("another-key") as other,
    ):
        response = mine.responses.create(model=MODEL, input="secret")
        with pytest.raises(NotFoundError):
            other.responses.retrieve(response.id)
        with pytest.raises(BadRequestError):
            other.responses.create(model=MODEL, input="?", previous_response_id=response.id)


def test_the_oldest_are_forgotten_first() -> None:
    with serve(echoes(), max_stored_bytes=5000) as live, live.openai() as client:
        ids = [client.responses.create(model=MODEL, input=f"number {number}").id for number in range(10)]
        assert client.responses.retrieve(ids[-1]).output_text == "number 9"
        with pytest.raises(NotFoundError):
            client.responses.retrieve(ids[0])
