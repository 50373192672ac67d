"""Anthropic's messages through the `anthropic` client, against a real server."""

from __future__ import annotations

import asyncio

import pytest
from anthropic import BadRequestError, NotFoundError

from live import MODEL, Live, serve
from small_model import echoes, says

EPHEMERAL = {"type": "ephemeral"}
HELLO = [{"role": "user", "content": "Hello, 世界"}]


def test_a_whole_answer(echo: Live) -> None:
    with echo.anthropic() as client:
        message = client.messages.create(model=MODEL, max_tokens=100, messages=HELLO)
    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    assert [(block.type, block.text) for block in message.content] == [("text", "Hello, 世界")]
    assert message.usage.output_tokens == len("Hello, 世界".encode()) + 1


def test_a_streamed_answer(echo: Live) -> None:
    with echo.anthropic() as client, client.messages.stream(model=MODEL, max_tokens=100, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == "Hello, 世界"
        message = stream.get_final_message()
    assert (message.content[0].text, message.stop_reason) == ("Hello, 世界", "end_turn")
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens > 20


def test_the_events_of_a_stream(echo: Live) -> None:
    response = echo.post("/v1/messages", {"model": MODEL, "max_tokens": 2, "messages": HELLO, "stream": True})
    names = [event.partition("\n")[0] for event in response.text.split("\n\n")]
    assert names == [
        "event: message_start",
        "event: content_block_start",
        "event: content_block_delta",
        "event: content_block_delta",
        "event: content_block_stop",
        "event: message_delta",
        "event: message_stop",
        "",
    ]


def test_async(echo: Live) -> None:
    async def main() -> None:
        async with (
            echo.async_anthropic() as client,
            client.messages.stream(model=MODEL, max_tokens=100, messages=HELLO) as stream,
        ):
            assert "".join([text async for text in stream.text_stream]) == "Hello, 世界"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "text", "reason", "sequence"),
    [
        ({"max_tokens": 3}, "Hel", "max_tokens", None),
        ({"stop_sequences": ["x", "lo"]}, "Hel", "stop_sequence", "lo"),
        ({"stop_sequences": ["x"]}, "Hello, 世界", "end_turn", None),
        ({"extra_body": {"temperature": 0.5, "top_p": 0.9, "top_k": 5}}, "Hello, 世界", "end_turn", None),
    ],
)
def test_where_an_answer_ends(
    echo: Live, options: dict[str, object], text: str, reason: str, sequence: str | None
) -> None:
    with echo.anthropic() as client:
        message = client.messages.create(model=MODEL, messages=HELLO, **{"max_tokens": 100, **options})
    assert (message.content[0].text, message.stop_reason, message.stop_sequence) == (text, reason, sequence)


def test_a_conversation_in_blocks() -> None:
    turns = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "What is 2 + 2?", "cache_control": {"type": "ephemeral"}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me add.", "signature": ""},
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 2, "b": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "4"}]},
                {"type": "text", "text": "Well?"},
            ],
        },
    ]
    with serve(echoes()) as live, live.anthropic() as client:
        message = client.messages.create(
            model=MODEL, max_tokens=100, messages=turns, system=[{"type": "text", "text": "Be brief."}]
        )
        counted = client.messages.count_tokens(model=MODEL, messages=turns, system="Be brief.")
    assert message.content[0].text == "Well?"
    assert counted.input_tokens == message.usage.input_tokens + message.usage.cache_read_input_tokens


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_token": 5}, "did you mean .*max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "text only|tag"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "budget_tokens.* is not supported"),
        ({"tool_choice": {"type": "any"}}, "no tools are given"),
        ({"mcp_servers": []}, "fetches nothing"),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, "5,019 tokens"),
    ],
)
def test_what_cannot_be_honoured(echo: Live, fields: dict[str, object], words: str) -> None:
    with echo.anthropic() as client, pytest.raises(BadRequestError, match=words) as caught:
        client.messages.create(model=MODEL, max_tokens=9, messages=HELLO, extra_body=fields)
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "invalid_request_error"


def test_an_unknown_model(echo: Live) -> None:
    with echo.anthropic() as client, pytest.raises(NotFoundError, match="did you mean 'small'"):
        client.messages.create(model="smal", max_tokens=9, messages=HELLO)


def test_a_server_that_stops_says_so_in_anthropics_words() -> None:
    with serve(says("x" * 5000, delay_s=0.02), drain_s=1) as live, live.http() as client:
        body = {"model": MODEL, "max_tokens": 5000, "messages": HELLO, "stream": True}
        with client.stream("POST", "/v1/messages", json=body) as response:
            pieces = response.iter_text()
            next(pieces)
            live.running.should_exit = True
            last = "".join(pieces).split("\n\n")[-2]
    assert last.startswith("event: error\n")
    assert '"overloaded_error"' in last
