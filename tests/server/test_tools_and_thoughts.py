"""What becomes of thoughts and tool calls in each API: events in, the clients' own objects out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from anthropic.types import Message
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from kaiwa.events import (
    BrokenToolCall,
    Event,
    Finished,
    FinishReason,
    PromptProgress,
    ReasoningDelta,
    TextDelta,
    Timings,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)
from kaiwa.server.chat import answer as chat
from kaiwa.server.head import Head
from kaiwa.server.messages import answer as messages
from kaiwa.server.responses import answer as responses
from kaiwa.server.responses.request import ResponseRequest

CALLS = (
    PromptProgress(5, 9, 2),
    ReasoningDelta("I should "),
    ReasoningDelta("look."),
    TextDelta("One moment."),
    ToolCallStarted(0, "call_a", "weather"),
    ToolCallDelta(0, '{"city": '),
    ToolCallDelta(0, '"Kyōto"}'),
    ToolCall("weather", {"city": "Kyōto"}, "call_a", 0),
    ToolCall("time", {}, "call_b", 1),
)


async def numbered(events: Sequence[Event], reason: FinishReason) -> AsyncGenerator[tuple[int, Event]]:
    for event in events:
        yield 0, event
    yield 0, Finished(reason, Usage(9, 2, 12, 4), Timings(0, 0, 0, 0, 0))


def pieces_of(stream: AsyncGenerator[bytes]) -> list[Any]:
    """The JSON objects of a stream's events."""

    async def read() -> bytes:
        return b"".join([piece async for piece in stream])

    datas = [line[6:] for line in asyncio.run(read()).decode().split("\n") if line.startswith("data: ")]
    return [json.loads(data) for data in datas if data != "[DONE]"]


def test_chat_completions_whole() -> None:
    work = chat.whole(numbered(CALLS, "tool_calls"), head=Head("m", "c"), num_choices=1, has_logprobs=False)
    completion = ChatCompletion.model_validate(asyncio.run(work))
    message, reason = completion.choices[0].message, completion.choices[0].finish_reason
    assert (message.content, message.reasoning_content, reason) == ("One moment.", "I should look.", "tool_calls")
    assert message.reasoning == message.reasoning_content
    assert [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls] == [
        ("call_a", "weather", {"city": "Kyōto"}),
        ("call_b", "time", {}),
    ]
    assert completion.usage.completion_tokens_details.reasoning_tokens == 4


def test_chat_completions_in_chunks() -> None:
    stream = chat.chunks(numbered(CALLS, "tool_calls"), head=Head("m", "c"), include_usage=False)
    chunks = [ChatCompletionChunk.model_validate(piece) for piece in pieces_of(stream)]
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or ():
            begun = calls.setdefault(call.index, [call.id or "", call.function.name or "", ""])
            begun[2] += call.function.arguments
    assert calls == {0: ["call_a", "weather", '{"city": "Kyōto"}'], 1: ["call_b", "time", "{}"]}
    assert "".join(getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks) == "I should look."
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_messages_whole() -> None:
    message = Message.model_validate(asyncio.run(messages.whole(numbered(CALLS, "tool_calls"), model="m")))
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[0].thinking == "I should look."
    assert [(block.id, block.name, block.input) for block in message.content[2:]] == [
        ("call_a", "weather", {"city": "Kyōto"}),
        ("call_b", "time", {}),
    ]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.cache_read_input_tokens) == (
        "tool_use",
        7,
        2,
    )


def test_messages_in_events() -> None:
    events = pieces_of(messages.written(numbered(CALLS, "tool_calls"), model="m"))
    assert events[0]["message"]["usage"]["input_tokens"] == 7
    open_blocks: list[int] = []
    arguments: dict[int, str] = {}
    for event in events:
        if event["type"] == "content_block_start":
            assert not open_blocks
            open_blocks.append(event["index"])
        elif event["type"] == "content_block_stop":
            assert open_blocks.pop() == event["index"]
        elif event.get("delta", {}).get("type") == "input_json_delta":
            assert open_blocks == [event["index"]]
            arguments[event["index"]] = arguments.get(event["index"], "") + event["delta"]["partial_json"]
    assert arguments == {2: '{"city": "Kyōto"}', 3: "{}"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_responses_whole() -> None:
    draft = responses.Draft(ResponseRequest(model="m", input="Weather?"))
    response = Response.model_validate(asyncio.run(responses.whole(numbered(CALLS, "tool_calls"), draft)))
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert response.output[0].content[0].text == "I should look."
    assert (response.output[2].call_id, response.output[2].arguments) == ("call_a", '{"city": "Kyōto"}')
    assert response.usage.output_tokens_details.reasoning_tokens == 4
    turn = draft.turn()
    assert (turn["content"], turn["reasoning_content"]) == ("One moment.", "I should look.")
    assert [call["id"] for call in turn["tool_calls"]] == ["call_a", "call_b"]


def test_responses_in_events_end_with_the_same() -> None:
    ended: list[dict[str, Any]] = []
    draft = responses.Draft(ResponseRequest(model="m", input="Weather?"))
    events = pieces_of(responses.written(numbered(CALLS, "tool_calls"), draft, on_end=ended.append))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done == ended[0]["output"]
    assert [event["arguments"] for event in events if event["type"] == "response.function_call_arguments.done"] == [
        '{"city": "Kyōto"}',
        "{}",
    ]


def test_a_call_that_breaks_is_shown_as_text() -> None:
    events = (
        ToolCallStarted(0, "call_a", "weather"),
        ToolCallDelta(0, '{"city'),
        BrokenToolCall('{"city": ', "it is cut", 0),
    )
    stream = chat.chunks(numbered(events, "length"), head=Head("m", "c"), include_usage=False)
    assert '{"city": ' in [piece["choices"][0]["delta"].get("content") for piece in pieces_of(stream)]
    message = asyncio.run(messages.whole(numbered(events, "length"), model="m"))
    assert message["content"] == [{"type": "text", "text": '{"city": '}]
    assert message["stop_reason"] == "max_tokens"
